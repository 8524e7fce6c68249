"""A running fit as the library sees it: progress, callbacks, Ctrl-C."""
from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from ctypes import byref, c_int
from typing import Any, Callable, Mapping, Optional

from . import _native

_METRICS = _native.metric_names()


class StoppedEarly(UserWarning):
    """A fit was stopped by Ctrl-C; the model is what was learned until then."""


def record_of(epoch: _native.Epoch) -> "dict[str, Any]":
    record: "dict[str, Any]" = {
        "epoch": epoch.epoch, "epochs": epoch.epochs, "seconds": epoch.seconds,
        "losses": {epoch.loss_names[i].decode(): epoch.loss_values[i] for i in range(epoch.losses)},
        "validation": {name: epoch.validation[i] for i, name in enumerate(_METRICS)} if epoch.validation else None}
    if epoch.members > 1:
        record["member"], record["members"] = epoch.member, epoch.members
    return record


def line_of(record: Mapping[str, Any]) -> str:
    parts = []
    if "members" in record:
        parts.append(f"member {record['member'] + 1}/{record['members']}")
    parts.append(f"epoch {record['epoch']}/{record['epochs']}")
    if "total" in record["losses"]:
        parts.append(f"loss {record['losses']['total']:.4g}")
    if record["validation"]:
        parts.append(f"val AP {record['validation']['AP']:.4f}")
    parts.append(f"{record['seconds']:.1f} s")
    return "  ".join(parts)


def share_of(record: Mapping[str, Any]) -> float:
    within = record["epoch"] / max(record["epochs"], 1)
    return (record.get("member", 0) + within) / max(record.get("members", 1), 1)


class Display:
    """Progress: a bar in a terminal, a line that is replaced in a notebook, lines now and then elsewhere."""

    def __init__(self) -> None:
        self._shown = 0.0
        self._drawn = False
        self._handle: Any = None
        self._notebook = False
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if type(shell).__name__ == "ZMQInteractiveShell":
            self._notebook = True

    def show(self, record: Mapping[str, Any]) -> None:
        now, last = time.monotonic(), record["epoch"] == record["epochs"]
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if now - self._shown < (.1 if terminal or self._notebook else 1) and not last and self._shown:
            return
        self._shown = now
        filled = int(20 * share_of(record))
        text = f"[{'#' * filled}{'.' * (20 - filled)}] {line_of(record)}"
        if self._notebook:
            from IPython.display import display  # there is one: we run in it
            content = {"text/plain": text, "text/html": f"<progress value='{share_of(record):.3f}'></progress> "
                                                        f"{line_of(record)}"}
            if self._handle is None:
                self._handle = display(content, raw=True, display_id=True)
            else:
                self._handle.update(content, raw=True)
        elif terminal:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
            self._drawn = True
        else:
            print(line_of(record), file=sys.stderr)

    def close(self) -> None:
        if self._drawn:
            sys.stderr.write("\n")
            self._drawn = False


class Monitor:
    """What the library calls during a fit. Nothing is raised through it: that is kept for afterwards."""

    def __init__(self, verbose: bool, callback: Optional[Callable[["dict[str, Any]"], Any]]) -> None:
        self.history: "list[dict[str, Any]]" = []
        self.remarks: "list[str]" = []
        self.interrupts = 0
        self.error: Optional[BaseException] = None
        self._display = Display() if verbose else None
        self._callback = callback
        self._before: Any = None

    def progress(self, _user: Any, epoch: Any) -> int:
        try:
            record = record_of(epoch.contents)
            self.history.append(record)
            if self._display is not None:
                self._display.show(record)
            if self._callback is not None and self._callback(record):
                return 1
            return 0
        except BaseException as error:  # noqa: B902: C cannot pass it on
            self.error = error
            return 1

    def stop(self, _user: Any) -> int:
        return 1 if self.interrupts or self.error is not None else 0

    def remark(self, _user: Any, text: bytes) -> None:
        self.remarks.append(_native.spoken(text.decode("utf-8", "replace")))

    def _count(self, _signal: int, _frame: Any) -> None:
        self.interrupts += 1

    def __enter__(self) -> "Monitor":
        if threading.current_thread() is threading.main_thread() and \
                signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._count)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._display is not None:
            self._display.close()


class Fitted:
    """The outcome of a fit."""

    def __init__(self, model: _native.Model, history: "list[dict[str, Any]]", stopped: bool, interrupts: int) -> None:
        self.model, self.history, self.stopped, self.interrupts = model, history, stopped, interrupts
        self.error: Optional[_native.Diverged] = None

    def warn(self) -> None:
        done = self.history[-1] if self.history else None
        warnings.warn(f"stopped by Ctrl-C at {line_of(done) if done else 'its start'}: the model is what was learned "
                      "until then", StoppedEarly, stacklevel=4)


def run(method: Optional[str], preset: Optional[str], settings: Mapping[str, Any], data: _native.Data,
        validation: Optional[_native.Data], *, seed: int, hold_out: float, threads: Optional[int],
        device: Optional[str], verbose: bool,
        callback: Optional[Callable[["dict[str, Any]"], Any]]) -> Fitted:
    """Fits a model. A diverged fit whose best epoch is kept has `error` set."""
    set_threads(threads)
    set_device(device)
    model = new_model(method, preset, settings)
    options, stopped = _native.FitOptions(), c_int()
    _native.library.lacuna_fit_options_init(byref(options))
    options.seed, options.hold_out = whole(seed, "seed"), real(hold_out, "hold_out")
    options.validation = None if validation is None else validation.pointer
    with Monitor(verbose, callback) as monitor:
        options.progress, options.stop = _native.Progress(monitor.progress), _native.Stop(monitor.stop)
        options.remark = _native.Remark(monitor.remark)
        diverged = None
        try:
            _native.call("lacuna_model_fit", model, data, byref(options), byref(stopped))
        except _native.Diverged as error:
            if not stopped.value:
                raise
            diverged = error
        except KeyboardInterrupt:
            if monitor.error is None:
                raise
    if monitor.error is not None:
        raise monitor.error
    for remark in monitor.remarks:
        warnings.warn(remark, stacklevel=4)
    fitted = Fitted(model, monitor.history, bool(stopped.value), monitor.interrupts)
    fitted.error = diverged
    return fitted


def whole(value: Any, what: str, most: int = 2**64 - 1) -> int:
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{what} is a whole number, not {value!r}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{what} is a number from 0 to {most}, not {number}")
    return number


def real(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{what} is a number, not {value!r}") from None


def set_threads(threads: Optional[int]) -> None:
    if threads is not None:
        _native.call("lacuna_set_threads", whole(threads, "threads", 1024))


def set_device(device: Optional[str]) -> None:
    if device is not None:
        _native.call("lacuna_set_device", _native.text(device, "device"))


def new_model(method: Optional[str], preset: Optional[str], settings: Mapping[str, Any]) -> _native.Model:
    model = _native.made(_native.Model, "lacuna_model_new", None if method is None else _native.text(method, "method"),
                         None if preset is None else _native.text(preset, "preset"))
    pairs, count = _native.settings(settings)
    for i in range(count):
        _native.call("lacuna_model_set", model, pairs[i].name, pairs[i].value)
    return model
