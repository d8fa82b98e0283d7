//! A real broker: the program that FILA_SERVER names.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::eventually;

/// A process with data of its own, until it is dropped.
pub struct Server {
    pub address: String,
    process: Child,
    folder: std::path::PathBuf,
}

impl Server {
    pub async fn start() -> Self {
        let program = std::env::var_os("FILA_SERVER").expect("FILA_SERVER names the program of the broker");
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = free.local_addr().expect("bound").to_string();
        drop(free);
        let name = format!("fila-rust-{}", address.replace([':', '.'], "-"));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for its data");
        let mut command = Command::new(program);
        command.args(["--listen", &address, "--data-dir"]).arg(folder.join("data")).current_dir(&folder);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let server = Self { address, process, folder };
        eventually(async || {
            let connecting = TcpStream::connect(&server.address);
            matches!(tokio::time::timeout(Duration::from_secs(1), connecting).await, Ok(Ok(_)))
        })
        .await;
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
