//! The driver of the Rust SDK for the conformance suite: `sdks/conformance/DRIVER.md` has its protocol.

mod answers;
mod load;
mod ops;

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::answers::{Outcome, refusal};
use crate::ops::Driver;

#[tokio::main]
async fn main() {
    let driver = Arc::new(Driver::default());
    let (lines, mut read) = mpsc::unbounded_channel();
    // A thread of its own: reading from standard input cannot be cancelled.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = read.recv().await {
        let Ok(request) = serde_json::from_str::<Value>(&line) else {
            eprintln!("not JSON: {line}");
            continue;
        };
        let driver = driver.clone();
        tokio::spawn(async move {
            let id = request["id"].clone();
            let outcome = driver.run(request).await;
            say(&id, outcome);
        });
    }
    driver.close_all().await;
}

fn say(id: &Value, outcome: Outcome) {
    let answer = match outcome {
        Ok(answer) => json!({"id": id, "ok": answer}),
        Err(problem) => json!({"id": id, "error": refusal(&problem)}),
    };
    let mut out = std::io::stdout().lock();
    // The runner may have gone: then nobody reads the answer.
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}
