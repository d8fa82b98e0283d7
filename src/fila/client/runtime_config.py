"""The broker's runtime configuration: entries that can change while it runs, such as throttle limits."""

from fila.client.admin_service import AdminCalls
from fila.client.arguments import made
from fila.client.errors import ConfigNotFoundError
from fila.v1 import admin_pb2


class ConfigCalls(AdminCalls):
    """The calls about the runtime configuration, as `AsyncClient` has them."""

    async def set_config(self, key: str, value: str) -> None:
        """Set an entry of the runtime configuration. Raises InvalidArgumentError."""
        admin = self._admin()
        await admin.call(admin.stub.SetConfig, made(admin_pb2.SetConfigRequest, key=key, value=value))

    async def get_config(self, key: str) -> str | None:
        """The value of an entry of the runtime configuration, or None."""
        admin = self._admin()
        try:
            response = await admin.call(admin.stub.GetConfig, made(admin_pb2.GetConfigRequest, key=key))
        except ConfigNotFoundError:
            return None
        return response.value

    async def list_config(self, prefix: str = "") -> dict[str, str]:
        """The entries of the runtime configuration whose keys begin with `prefix`."""
        admin = self._admin()
        found: dict[str, str] = {}
        request = made(admin_pb2.ListConfigRequest, prefix=prefix)
        while True:
            response = await admin.call(admin.stub.ListConfig, request)
            found.update((entry.key, entry.value) for entry in response.entries)
            if not response.cursor:
                return found
            request.cursor = response.cursor

    async def delete_config(self, key: str) -> bool:
        """Remove an entry of the runtime configuration. Returns whether it existed."""
        admin = self._admin()
        response = await admin.call(admin.stub.DeleteConfig, made(admin_pb2.DeleteConfigRequest, key=key))
        return response.existed
