"""The console: a broker in a browser. A process of its own that talks to the broker through the async SDK alone.

| what | where |
|---|---|
| HTTP: routes, guard, sessions, forms | `app.py`, `guard.py`, `sessions.py`, `forms.py`, `serving.py` |
| what it knows of the broker: samples, their history | `watch.py`, `history.py`, `links.py` |
| what follows from figures: pure, no I/O | `problems.py`, `heat.py`, `charts.py`, `forecast.py`, `trials.py` |
| how things are shown | `rendering.py`, `words.py`, `payload.py`, `lua_source.py`, `commands.py` and the two folders |
| one module for each page | `pages/` |

Rules:
- A browser never holds a key: it holds a cookie, and the key stays in this process.
- Text that comes from a broker is hostile. It reaches a page through `words.visible` or a template, which escapes it.
- Whatever grows has a bound, in `limits.py`.
"""
