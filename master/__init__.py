"""The controller. Inside, from the ground up: plan, hosts, rollup, control, output, session, cli."""
