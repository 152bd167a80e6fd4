"""The test host: one asyncio thread at the end of a pipe, and the engine that drives I/O."""
