"""ES modules become one classic script that does the same, or are refused."""

import pytest

from ivypy.master.report.one_file import join_modules

ACCEPTED = {
    "const": "export const a = 1;",
    "function": "export function a() {}",
    "async function": "export async function a() {}",
    "generator": "export function* a() {}",
    "class": "export class a {}",
    "among others": "const hidden = 1;\nexport const a = hidden;\nfunction more() {}",
    "import in a comment": "// import nothing\nexport const a = 1;",
    "export in a string": 'export const a = "export default";',
    "await within": "export async function a() {\n  await b();\n}",
}
REFUSED = {
    "export default 1;": "export default",
    "export { a };": "export {",
    'export * from "./b.js";': "export *",
    "export let a = 1;": "export let",
    "export var a = 1;": "export var",
    "export const { a } = b;": "export const {",
    'import a from "./b.js";': "import a",
    'import * as a from "./b.js";': "import *",
    'import "./b.js";': 'import "./b.js"',
    "import { a } from './b.js';": "import { a }",
    'import { a } from "b.js";': "import { a }",
    'import { a as c } from "./b.js";': "a as c",
    '  import { a } from "./b.js";': "import { a }",
    'const a = await import("./b.js");': "import(",
    "const a = import.meta.url;": "import.meta",
    "await a();": "await",
    "const a = await b();": "await",
    "for await (const a of b) {}": "await",
    'const a = "</script>";': "</script",
    'const a = "<!-- ";': "<!--",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=[*ACCEPTED])
def test_known_forms_are_joined(text: str) -> None:
    joined = join_modules({"main.js": 'import { a } from "./x.js";\na;', "x.js": text}, "main.js")
    assert "return { a };" in joined
    assert joined.index("// x.js") < joined.index("// main.js"), "after what it imports from"
    assert "const { a } = module_0;" in joined


@pytest.mark.parametrize("text", REFUSED, ids=[*REFUSED])
def test_unknown_forms_are_refused_with_their_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"main\.js") as refused:
        join_modules({"main.js": f"const before = 1;\n{text}\n", "b.js": "export const a = 1;"}, "main.js")
    assert REFUSED[text] in str(refused.value)


def test_a_place_is_a_line() -> None:
    with pytest.raises(ValueError, match=r"main\.js:3: .*export default"):
        join_modules({"main.js": "\n\nexport default 1;"}, "main.js")


@pytest.mark.parametrize(
    ("modules", "says"),
    [
        ({"main.js": 'import { a } from "./x.js";'}, "./x.js, which is not there"),
        ({"main.js": 'import { a } from "./x.js";', "x.js": "const a = 1;"}, "does not export"),
        ({"main.js": 'import { a } from "./x.js";\nexport const b = 1;',
          "x.js": 'import { b } from "./main.js";\nexport const a = 1;'}, "main.js -> x.js -> main.js"),
        ({"x.js": "const a = 1;"}, "main.js: not there"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(modules: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        join_modules(modules, "main.js")
    assert says in str(refused.value)


def test_names_of_modules_do_not_meet() -> None:
    """Each module has names of its own, though all are one script."""
    own = "const same = 1;\nexport const {name} = same;"
    modules = {f"{name}.js": own.replace("{name}", name) for name in "ab"}
    main = 'import { a } from "./a.js";\nimport {\n  b,\n} from "./b.js";\nconst same = a + b;'
    joined = join_modules({"main.js": main, **modules}, "main.js")
    assert joined.count("const same = 1;") == 2 and "const { b } = module_1;" in joined
