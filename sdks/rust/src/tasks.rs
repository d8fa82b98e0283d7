//! The tasks of a client: all of them end with it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Error, Result};

/// How long connections may take to say goodbye to their servers.
const GOODBYE: Duration = Duration::from_secs(1);

/// Runs tasks on the runtime in which the client was made, whichever runtime calls it later.
#[derive(Clone)]
pub(crate) struct Tasks {
    runtime: Handle,
    running: TaskTracker,
    closed: CancellationToken,
    /// Connections end now, whatever they wait for.
    cut: CancellationToken,
}

impl Tasks {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Handle::try_current()
            .map_err(|_| Error::own(Error::FailedPrecondition, "a client is made inside of a Tokio runtime"))?;
        let (closed, cut) = (CancellationToken::new(), CancellationToken::new());
        Ok(Self { runtime, running: TaskTracker::new(), closed, cut })
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn_on(task, &self.runtime);
    }

    /// The output of a future, or an error as soon as the client is closed.
    pub(crate) async fn until_closed<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        self.closed.run_until_cancelled(future).await.ok_or_else(Error::closed)
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(crate) fn end(&self) {
        self.closed.cancel();
    }

    /// Returns when no task is left. A connection stays for as long as somebody has a call on it, also one that is not
    /// waited for any more, or while its server does not read. So it is cut in the end.
    pub(crate) async fn ended(&self) {
        self.running.close();
        if timeout(GOODBYE, self.running.wait()).await.is_err() {
            self.cut.cancel();
            self.running.wait().await;
        }
    }
}

/// Runs the tasks of connections.
impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Tasks {
    fn execute(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let cut = self.cut.clone();
        self.spawn(async move {
            cut.run_until_cancelled(future).await;
        });
    }
}
