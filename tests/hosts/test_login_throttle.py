"""At most so many logins at a time to one address."""

import asyncio

from ivypy.master.hosts.login_throttle import LOGINS_AT_A_TIME, LoginThrottle


async def most_at_once(throttle: LoginThrottle, addresses: list[str]) -> int:
    """Everybody logs in at once, and stays logged in until nobody else can come."""
    inside = most = 0

    async def one(address: str) -> None:
        nonlocal inside, most
        async with throttle.to(address):
            inside += 1
            most = max(most, inside)
            for _ in addresses:
                await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(one(address) for address in addresses))
    return most


async def test_at_most_eight_logins_at_a_time_to_one_address() -> None:
    assert LOGINS_AT_A_TIME == 8  # below sshd's default MaxStartups, 10:30:100
    assert await most_at_once(LoginThrottle(), ["h1"] * 30) == 8


async def test_each_address_has_a_limit_of_its_own() -> None:
    assert await most_at_once(LoginThrottle(2), ["h1", "h2", "h3"] * 10) == 6
