"""`flatout data serve [TARGET]`: a tf.data service for a pipeline, and whether it is faster."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from flatout.data.service import Service


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    target: Annotated[
        str | None, typer.Argument(help="The pipeline as `module:function` or `file.py:function`.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The dispatcher's port; 0 takes any free one.")] = 0,
    host: Annotated[str, typer.Option(help="The name under which other machines reach this one.")] = "localhost",
    join: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Start workers only, for a dispatcher that runs elsewhere.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure whether the service is faster, and exit.")
    ] = False,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="With --measure: write the case (- is stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the address or the verdict.")] = False,
) -> None:
    """Run a tf.data service: a dispatcher and workers that compute a pipeline's elements. Ctrl-C ends it.

    With --measure the pipeline runs alternately in one process and through the service, and the verdict is printed. The
    service has no password: whoever reaches its port can use it. Keep it inside a trusted network.
    """
    from flatout.data.service import Service, ServiceRequest
    from flatout.model.errors import InvalidOption

    if measure and (target is None or join is not None):
        raise InvalidOption("--measure needs a TARGET to measure, and a dispatcher of its own: leave --join out.")

    def say(text: str) -> None:
        if not quiet:
            sys.stderr.write(f"flatout: {text}\n")
            sys.stderr.flush()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a script start with it ignored
    say(f"starting {'' if join else 'a dispatcher and '}{workers} worker{'s' if workers > 1 else ''}")
    request = ServiceRequest(target, workers, port, host, join)
    try:
        with Service(request, say) as service:
            if measure:
                _measure(service, json, say)
                return
            typer.echo(service.address)
            if service.dataset_id is not None:
                say("in the program that trains:")
                say("    dataset = tf.data.experimental.service.from_dataset_id(")
                say(f'        "distributed_epoch", "{service.address}", dataset_id="{service.dataset_id}")')
            service.wait()
    except KeyboardInterrupt:
        say("ended")


def _measure(service: Service, json: str | None, say: Callable[[str], None]) -> None:
    say("measuring alternately in one process and through the service")
    found = service.measure()
    if json is not None:
        from flatout.report import json as case_json

        case_json.write(found.as_case(service.request), json)
    if json != "-":
        typer.echo(found.verdict(service.request.workers))
