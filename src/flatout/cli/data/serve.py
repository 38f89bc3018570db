"""`flatout data serve [TARGET]`: a tf.data service for a pipeline, and whether it is faster."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli._options import command

if TYPE_CHECKING:
    from flatout.data.service import Service


@dataclass(frozen=True)
class Options:
    """The options as they are typed."""

    target: Annotated[str | None, typer.Argument(help="The pipeline as `module:function` or `file.py:function`.")] = (
        None
    )
    workers: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 1
    port: Annotated[int, typer.Option(min=0, max=65535, help="The dispatcher's port; 0 takes any free one.")] = 0
    host: Annotated[str, typer.Option(help="The name under which other machines reach this one.")] = "localhost"
    join: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Start workers only, for a dispatcher that runs elsewhere.")
    ] = None
    measure: Annotated[bool, typer.Option("--measure", help="Measure whether the service is faster, and exit.")] = False
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="With --measure: write the case (- is stdout).")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the address or the verdict.")] = False

    def say(self, text: str) -> None:
        if not self.quiet:
            sys.stderr.write(f"flatout: {text}\n")
            sys.stderr.flush()


def register(app: typer.Typer) -> None:
    command(app, "serve", Options, serve)


def serve(options: Options) -> None:
    """Run a tf.data service: a dispatcher and workers that compute a pipeline's elements. Ctrl-C ends it.

    With --measure the pipeline runs alternately in one process and through the service, and the verdict is printed. The
    service has no password: whoever reaches its port can use it. Keep it inside a trusted network.
    """
    from flatout.data.service import Service, ServiceRequest
    from flatout.model.errors import InvalidOption

    if options.measure and (options.target is None or options.join is not None):
        raise InvalidOption("--measure needs a TARGET to measure, and a dispatcher of its own: leave --join out.")
    name, _, function = (options.target or "").rpartition(":")
    if options.target is not None and not (name and function):
        raise InvalidOption(f"{options.target!r} names no function. Give module:function or file.py:function.")
    if name.endswith(".py") and not os.path.isfile(name):
        raise InvalidOption(f"There is no file at {name!r}. Give module:function or file.py:function.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a script start with it ignored
    count = f"{options.workers} worker{'s' if options.workers > 1 else ''}"
    options.say(f"starting {'' if options.join else 'a dispatcher and '}{count}")
    request = ServiceRequest(options.target, options.workers, options.port, options.host, options.join)
    try:
        with Service(request, options.say) as service:
            if options.measure:
                _measure(service, options)
            else:
                _run(service, options)
    except KeyboardInterrupt:
        options.say("ended")


def _run(service: Service, options: Options) -> None:
    typer.echo(service.address)
    if service.dataset_id is not None:
        options.say("in the program that trains:")
        options.say("    dataset = tf.data.experimental.service.from_dataset_id(")
        options.say(f'        "distributed_epoch", "{service.address}", dataset_id="{service.dataset_id}")')
    service.wait()


def _measure(service: Service, options: Options) -> None:
    options.say("measuring alternately in one process and through the service")
    found = service.measure()
    if options.json is not None:
        from flatout.report import json as case_json

        case_json.write(found.as_case(service.request), options.json)
    if options.json != "-":
        typer.echo(found.verdict(service.request.workers))
