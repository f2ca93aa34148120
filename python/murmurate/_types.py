"""Types of what users pass, for type checkers and readers."""

from __future__ import annotations

import os
from typing import Any, Callable, Literal, Mapping, Optional, Protocol, SupportsFloat, SupportsInt, Tuple, Union

Place = Union[str, "os.PathLike[str]"]

# Whether buffers of PyTorch modules stay with each daemon, or are averaged as the parameters are.
Buffers = Literal["local", "mean"]

# What `evaluate` returns. Scalars of any framework are numbers.
Score = Union[Tuple[SupportsFloat, Optional[SupportsFloat], SupportsInt], Mapping[str, Any]]

# A function of the model in the framework's form.
Evaluate = Callable[[Any], Score]


class Stateful(Protocol):
    """An optimizer, as PyTorch has them."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any, /) -> Any: ...
