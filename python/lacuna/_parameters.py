"""What estimators have in common: methods and settings by name, get_params and set_params."""
from __future__ import annotations

import difflib
import functools
import inspect
import keyword
from typing import Any, Mapping, Optional

from . import _fit, _native


@functools.lru_cache(maxsize=None)
def methods() -> "dict[str, dict[str, Any]]":
    """All methods by name, with their presets and what they can do.

    >>> import lacuna
    >>> "naim3l" in lacuna.methods()
    True
    """
    return {entry["name"]: entry for entry in _native.call_json("lacuna_methods")}


@functools.lru_cache(maxsize=None)
def settings(method: Optional[str] = None, preset: Optional[str] = None) -> "dict[str, dict[str, Any]]":
    """All settings of a method: name, type, default (of the preset), range or choices, and help.

    >>> import lacuna
    >>> lacuna.settings()["epochs"]["type"]
    'integer'
    """
    model = _fit.new_model(method, preset, {})
    return {python_name(entry["name"]): {**entry, "help": _native.spoken(entry["help"])}
            for entry in _native.call_json("lacuna_model_settings", model)}


def python_name(name: str) -> str:
    """missing-views is missing_views, lambda is lambda_."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


@functools.lru_cache(maxsize=None)
def _setting_names() -> "frozenset[str]":
    return frozenset(name for method in methods() for name in settings(method))


def not_fitted(estimator: Any) -> Exception:
    """scikit-learn's own exception where it is there."""
    text = f"This {type(estimator).__name__} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _native.UsageError(text)
    return NotFittedError(text)


class Estimator:
    """Parameters of every estimator. get_params and set_params go over the attributes that the constructor set: settings
    of methods come and go with what the user gives, so that they cannot be read off a signature."""

    _estimator_type = "classifier"
    _own = frozenset({"method", "preset", "seed", "hold_out", "threads", "device", "verbose"})  # not the method's

    def __init__(self, method: Optional[str] = None, preset: Optional[str] = None, *, seed: int = 1,
                 hold_out: float = .15, threads: Optional[int] = None, device: Optional[str] = None,
                 verbose: bool = False, **settings: Any) -> None:
        self.method = method
        self.preset = preset
        self.seed = seed
        self.hold_out = hold_out
        self.threads = threads
        self.device = device
        self.verbose = verbose
        for name, value in settings.items():
            if name not in _setting_names():
                raise TypeError(f"{type(self).__name__} has no parameter '{name}'{self._nearest(name)}")
            if value is not None:
                setattr(self, name, value)

    def _known(self) -> "list[str]":
        return [name for name in vars(self) if not name.startswith("_") and
                (not name.endswith("_") or name in _setting_names())]

    def get_params(self, deep: bool = True) -> "dict[str, Any]":
        """The parameters that were given or have defaults, by name."""
        return {name: getattr(self, name) for name in sorted(self._known())}

    def set_params(self, **parameters: Any) -> Any:
        """Sets parameters and settings of the method by name."""
        known = self._known()
        for name, value in parameters.items():
            if name not in known and name not in _setting_names():
                raise ValueError(f"Invalid parameter '{name}' for estimator {self!r}{self._nearest(name)}")
            setattr(self, name, value)
        return self

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self._known(), *_setting_names()], 1)
        return f"; did you mean '{near[0]}'?" if near else " (lacuna.settings() lists those of a method)"

    def _settings(self) -> "dict[str, Any]":
        own = self._own
        return {name: getattr(self, name) for name in self._known() if name not in own}

    def __repr__(self) -> str:
        fresh = type(self)()
        changed = [f"{name}={value!r}" for name, value in sorted(self.get_params().items())
                   if not (hasattr(fresh, name) and repr(getattr(fresh, name)) == repr(value))]
        return f"{type(self).__name__}({', '.join(changed)})"


def with_settings(cls: Any) -> Any:
    """Shows what the constructor takes beside its own parameters as its keywords, for completion and for introspection:
    those of every estimator, and every setting of every method."""
    own = inspect.signature(cls.__init__)
    fixed = [parameter for parameter in own.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    of_all = [parameter.replace(kind=parameter.KEYWORD_ONLY)
              for name, parameter in inspect.signature(Estimator.__init__).parameters.items()
              if name not in own.parameters and parameter.kind is not parameter.VAR_KEYWORD]
    shown = {parameter.name for parameter in [*fixed, *of_all]}
    settings_of_methods = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
                           for name in sorted(_setting_names()) if name not in shown]
    cls.__init__.__signature__ = own.replace(parameters=[*fixed, *of_all, *settings_of_methods])
    return cls
