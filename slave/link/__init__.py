"""The link to the controller: commands, their answers, and the results of a step."""
