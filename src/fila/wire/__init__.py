"""gRPC over HTTP/2 on asyncio, made for few streams with much on them: both ends of a connection, one frame layer.

It speaks to every gRPC peer. Decision 4 says why it is here and what it saves. From the bytes up:

- Formats, without state: `frames`, `headers` (HPACK), `status` (gRPC's status, metadata, timeouts), `varint`.
- One connection as a state machine, bytes in, `events` and bytes out; no socket, no event loop, no clock: `connection`
  with `client_connection` and `server_connection`, and their parts `frame_reader`, `flow_control`, `sender`,
  `settings`, `control`, `flood`, `limits`, `stream`.
- The memory of a server, counted and limited: `memory_quota`, `stream_memory`, `work_limit`.
- asyncio, bytes to and fro and events to their calls: `protocol` with `client_protocol` and `server_protocol`;
  `time_slice`, `loop_turns`, `malloc`.
- Calls: for handlers `server`, `method`, `grpc_request`, `server_call`, `responder`; for callers `channel` and
  `client_call`; for a thread without an event loop `blocking`.
"""
