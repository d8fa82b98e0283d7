//! A broker whose behaviour a test writes. It speaks HTTP/2 by itself, so that it can also misbehave.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use fila_client::proto::{self, ErrorKind};
use h2::server::{SendResponse, handshake};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct Fake {
    pub address: String,
    _open: DropGuard,
}

impl Fake {
    /// Serves each call by `serve`, until it is dropped.
    pub async fn start<F>(serve: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (open, serve) = (CancellationToken::new(), Arc::new(serve));
        let closed = open.clone();
        tokio::spawn(async move {
            let connections = AtomicUsize::new(0);
            while let Some(Ok((socket, _))) = closed.run_until_cancelled(listener.accept()).await {
                let (serve, cut) = (serve.clone(), closed.child_token());
                let number = connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move { cut.run_until_cancelled(connection(socket, number, &cut, &*serve)).await });
            }
        });
        Self { address, _open: open.drop_guard() }
    }
}

async fn connection<F>(socket: TcpStream, number: usize, cut: &CancellationToken, serve: &impl Fn(Call) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let Ok(mut calls) = handshake(socket).await else { return };
    while let Some(Ok((request, respond))) = calls.accept().await {
        let cut = cut.clone();
        tokio::spawn(serve(Call::new(request, respond, number, cut)));
    }
}

/// One call of a client.
pub struct Call {
    pub path: String,
    pub headers: HeaderMap,
    /// Counts the connections of the fake.
    pub connection: usize,
    cut: CancellationToken,
    body: RecvStream,
    unread: BytesMut,
    respond: SendResponse<Bytes>,
    answer: Option<SendStream<Bytes>>,
}

impl Call {
    fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        connection: usize,
        cut: CancellationToken,
    ) -> Self {
        let (request, body) = request.into_parts();
        let path = request.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        Self { path, headers: request.headers, connection, cut, body, unread: BytesMut::new(), respond, answer: None }
    }

    /// The next message of the client; `None` when it sends no more.
    pub async fn read<M: Message + Default>(&mut self) -> Option<M> {
        loop {
            if self.unread.len() >= 5 {
                let length = u32::from_be_bytes(self.unread[1..5].try_into().expect("four bytes")) as usize;
                if self.unread.len() >= 5 + length {
                    self.unread.advance(5);
                    return Some(M::decode(self.unread.split_to(length)).expect("readable"));
                }
            }
            let more = self.body.data().await?.ok()?;
            let _ = self.body.flow_control().release_capacity(more.len());
            self.unread.extend_from_slice(&more);
        }
    }

    /// Sends the initial metadata.
    pub fn open(&mut self, metadata: &[(&'static str, &str)]) {
        let mut response = Response::builder().header("content-type", "application/grpc");
        for (name, value) in metadata {
            response = response.header(*name, *value);
        }
        let response = response.body(()).expect("valid");
        self.answer = self.respond.send_response(response, false).ok();
    }

    /// The client may have gone: then nothing is sent.
    pub fn send(&mut self, message: &impl Message) {
        let mut data = BytesMut::new();
        data.put_u8(0);
        data.put_u32(message.encoded_len() as u32);
        message.encode(&mut data).expect("room");
        if let Some(answer) = &mut self.answer {
            let _ = answer.send_data(data.freeze(), false);
        }
    }

    /// Ends the call in good order.
    pub fn end(self) {
        self.trailers(&[("grpc-status", "0")]);
    }

    pub fn trailers(mut self, trailers: &[(&'static str, &str)]) {
        if self.answer.is_none() {
            self.open(&[]);
        }
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("valid"))
        };
        if let Some(answer) = &mut self.answer {
            let _ = answer.send_trailers(trailers.iter().map(pair).collect());
        }
    }

    /// Answers a unary call.
    pub fn reply(mut self, message: &impl Message) {
        self.open(&[]);
        self.send(message);
        self.end();
    }

    /// Ends the call with an error of the contract.
    pub fn refuse(self, error: proto::Error) {
        let code = error.code.to_string();
        let details = details(&error);
        self.trailers(&[
            ("grpc-status", &code),
            ("grpc-message", "refused"),
            ("grpc-status-details-bin", &details),
            ("fila-owner", &error.owner),
        ]);
    }

    /// Cuts the connection.
    pub fn cut(self) {
        self.cut.cancel();
    }

    /// Waits until the client gives the call up or goes away.
    pub async fn given_up(mut self) {
        let waited = async {
            if let Some(mut answer) = self.answer.take() {
                let _ = std::future::poll_fn(|context| answer.poll_reset(context)).await;
            } else {
                let _ = std::future::poll_fn(|context| self.respond.poll_reset(context)).await;
            }
        };
        waited.await;
    }
}

pub fn refusal(code: i32, kind: ErrorKind) -> proto::Error {
    proto::Error { code, kind: kind.into(), ..Default::default() }
}

pub fn passing(code: i32, kind: ErrorKind) -> proto::Error {
    proto::Error { retryable: true, ..refusal(code, kind) }
}

pub fn not_owner(owner: &str) -> proto::Error {
    proto::Error { owner: owner.to_owned(), ..passing(14, ErrorKind::NotOwner) }
}

/// A google.rpc.Status with the error as its first detail, in base64.
fn details(error: &proto::Error) -> String {
    let mut detail = Vec::new();
    prost::encoding::string::encode(1, &"type.googleapis.com/fila.v1.Error".to_owned(), &mut detail);
    prost::encoding::bytes::encode(2, &error.encode_to_vec(), &mut detail);
    let mut status = Vec::new();
    prost::encoding::bytes::encode(3, &detail, &mut status);
    base64(&status)
}

fn base64(data: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in data.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for sign in 0..=chunk.len() {
            text.push(char::from(SIGNS[(bits >> (18 - 6 * sign) & 63) as usize]));
        }
    }
    text
}

/// An answer that takes all messages of a batch.
pub fn taken(request: &proto::EnqueueBatchRequest) -> proto::EnqueueBatchResponse {
    let result = |number: usize| proto::EnqueueResult {
        message_id: format!("{}-{number}", request.sequence),
        ..Default::default()
    };
    let results = (0..request.messages.len()).map(result).collect();
    proto::EnqueueBatchResponse { results, sequence: request.sequence, error: None }
}

/// Takes everything that is enqueued.
pub async fn take_all(mut call: Call) {
    call.open(&[]);
    while let Some(request) = call.read().await {
        call.send(&taken(&request));
    }
}

/// Settles everything.
pub async fn settle_all(mut call: Call) {
    call.open(&[]);
    while let Some(request) = call.read::<proto::SettleRequest>().await {
        call.send(&proto::SettleResponse { sequence: request.sequence, ..Default::default() });
    }
}

pub fn message(id: &str) -> proto::Message {
    let metadata = proto::MessageMetadata { lease_id: "lease".to_owned(), ..Default::default() };
    proto::Message { id: id.to_owned(), metadata: Some(metadata), ..Default::default() }
}

pub fn messages(messages: impl IntoIterator<Item = proto::Message>) -> proto::ConsumeResponse {
    proto::ConsumeResponse { messages: messages.into_iter().collect(), ..Default::default() }
}
