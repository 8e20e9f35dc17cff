"""A bench behind the Model Context Protocol (the official SDK, an extra): tools, resources, errors as data.

Tools answer JSON objects. What an agent can do wrong comes back as an error result whose text is JSON
(`answers.error_data`); the server goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from rooflang import __version__
from rooflang.agent.answers import PAGE, error_data
from rooflang.agent.bench import Bench
from rooflang.errors import RooflangError
from rooflang.rules import rule, rule_names

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
You lay one step of a model's inference over a cluster, and make it fast. Start with `describe` and `graph`. Every
change is a primitive of the RoofLang paper, written as a line such as `split_kernel layers.0.q dim=head axis=x`; macros
such as `tensor_parallel axis=x` stand for several. `set_compute graph mesh=2x4` lays the mesh first. `actions` proposes
what applies, best first; `simulate` tells the step time, `explain` what bounds it. `undo` and `branch` let you try.
All actions are checked: a refused one changes nothing and says why. The fastest plan that was simulated counts.
"""


def require_sdk() -> None:
    """Raises `RooflangError` where the SDK is not installed."""
    try:
        import mcp.server.mcpserver  # noqa: F401
    except ImportError as error:
        raise RooflangError(
            "the Model Context Protocol needs an extra package", where="mcp", hint="pip install 'rooflang[agent]'"
        ) from error


def make_server(bench: Bench) -> MCPServer[Any]:
    """The server of a bench. Raises `RooflangError` where the SDK is not installed."""
    require_sdk()
    from mcp.server.mcpserver import MCPServer

    server: MCPServer[Any] = MCPServer(
        name="rooflang", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR"
    )
    _add_tools(server, bench)
    _add_resources(server, bench)
    return server


def serve(bench: Bench) -> None:
    """Serve a bench on this process's standard input and output until the client closes them."""
    make_server(bench).run("stdio")


def _answer(bench: Bench, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a method of the bench returns, one call after the other, since the SDK runs each in a thread; its typed
    errors as results that are errors, which the SDK passes on although the tools are declared to return data."""
    from mcp.types import CallToolResult, TextContent

    try:
        with bench.turn:
            return do()
    except RooflangError as error:
        data = error_data(error)
        text = TextContent(type="text", text=json.dumps(data))
        return cast(dict[str, Any], CallToolResult(content=[text], structured_content=data, is_error=True))


def _add_tools(server: MCPServer[Any], bench: Bench) -> None:
    @server.tool()
    def describe() -> dict[str, Any]:
        """The problem, where the current branch stands, primitives and macros, and counts of what was done."""
        return _answer(bench, bench.describe)

    @server.tool()
    def graph(filter: str = "", page: int = 1, size: int = PAGE) -> dict[str, Any]:
        """The placed graph, a line for each kernel of each kind of block; `filter` is text that a line contains."""
        return _answer(bench, lambda: bench.show(filter, page, size))

    @server.tool()
    def actions(filter: str = "", page: int = 1, size: int = PAGE, predict: bool = True) -> dict[str, Any]:
        """Actions that apply now, best first, with the predicted step time after each. Every word of `filter` has to
        match the primitive or a name in the action, `*` is anything: `split_kernel layers.3*`."""
        return _answer(bench, lambda: bench.actions(filter, page, size, predict))

    @server.tool()
    def primitive(name: str) -> dict[str, Any]:
        """What a primitive does, why it is sound, what it needs, and the fields of its action."""
        return _answer(bench, lambda: bench.primitive(name))

    @server.tool()
    def check(action: str) -> dict[str, Any]:
        """May an action be taken now, and if not why? Changes nothing."""
        return _answer(bench, lambda: bench.check(action))

    @server.tool()
    def apply(lines: str) -> dict[str, Any]:
        """Take actions, one a line; macros are lines too. All of them are taken, or none."""
        return _answer(bench, lambda: bench.apply(lines))

    @server.tool()
    def simulate() -> dict[str, Any]:
        """Simulate a step of the current plan: time, throughput, memory, what bounds it."""
        return _answer(bench, bench.simulate)

    @server.tool()
    def explain() -> dict[str, Any]:
        """The critical path of the current plan, shares by operator and bound, and what would help."""
        return _answer(bench, bench.explain)

    @server.tool()
    def undo(steps: int = 1) -> dict[str, Any]:
        """Take the last actions back."""
        return _answer(bench, lambda: bench.undo(steps))

    @server.tool()
    def branch(name: str) -> dict[str, Any]:
        """Go on in a branch of that name: a new one begins where this one stands."""
        return _answer(bench, lambda: bench.branch(name))

    @server.tool()
    def journal(page: int = 1, size: int = PAGE) -> dict[str, Any]:
        """The actions so far, as a journal that `rooflang agent replay` reads."""
        return _answer(bench, lambda: bench.journal(page, size))


def _add_resources(server: MCPServer[Any], bench: Bench) -> None:
    @server.resource("rooflang://graph", mime_type="application/json")
    def placed_graph() -> str:
        """The first page of the placed graph."""
        with bench.turn:
            return json.dumps(bench.show())

    @server.resource("rooflang://trace", mime_type="application/json")
    def trace_summary() -> str:
        """Where the time of a step of the current plan goes."""
        with bench.turn:
            return json.dumps(bench.explain())

    @server.resource("rooflang://journal", mime_type="text/plain")
    def written_journal() -> str:
        """The journal of the current branch."""
        with bench.turn:
            return bench.session.journal

    for name in rule_names():

        def text(name: str = name) -> str:
            return rule(name).describe()

        text.__doc__ = f"The primitive {name}: law, reason, pre-conditions, examples."
        server.resource(f"rooflang://primitives/{name}", name=name, mime_type="text/plain")(_without_arguments(text))


def _without_arguments(text: Callable[[], str]) -> Callable[[], str]:
    """The same without a parameter, which would make the resource a template."""

    def resource() -> str:
        return text()

    resource.__doc__ = text.__doc__
    return resource
