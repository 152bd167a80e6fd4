"""A connector that costs little itself: elements x attributes, every reading another one, from a line made beforehand.

Every second attribute is a counter. An answer is the same text each time but for its number, its stamps and the first
digits of all values.
"""

import json
import sys
import time

METRICS = "@@"  # in the place of digits that change


def main(elements: int, attributes: int) -> None:
    names = [f"a{n:02}" for n in range(attributes)]
    kinds = ["counter" if n % 2 else "gauge" for n in range(attributes)]
    metrics = [
        {"element": "port", "attribute": name, "unit": "", "kind": kind}
        for name, kind in zip(names, kinds, strict=True)
    ]
    facts = [["port", f"p{element:03}", name, 1] for element in range(elements) for name in names]
    body = json.dumps(facts, separators=(",", ":")).replace(",1]", f",{METRICS}.25]")
    print(json.dumps({"type": "connector_hello", "protocol": 1, "name": "cheap"}), flush=True)
    gathers = 0
    for line in sys.stdin:
        number = json.loads(line)["id"]
        if "read_config" in line:
            print(json.dumps({"type": "connector_config", "re": number, "metrics": metrics}), flush=True)
            continue
        gathers += 1
        start_ns = time.monotonic_ns()
        now = body.replace(METRICS, str(1000 + gathers))
        stamps = f'"start_ns":{start_ns},"end_ns":{time.monotonic_ns()}'
        print(f'{{"type":"readings","re":{number},{stamps},"facts":{now}}}', flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
