//! What a peer sends, looked at before tonic reads it.
//!
//! tonic panics on details of a status that are not base64: such details are left out here.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tower_service::Service;

const DETAILS: &str = "grpc-status-details-bin";

type Calling = Pin<Box<dyn Future<Output = Result<http::Response<CheckedBody>, tonic::transport::Error>> + Send>>;

/// A channel whose answers can be given to tonic.
#[derive(Clone)]
pub(crate) struct Checked(pub(crate) Channel);

impl Service<http::Request<Body>> for Checked {
    type Response = http::Response<CheckedBody>;
    type Error = tonic::transport::Error;
    type Future = Calling;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Calling {
        let calling = self.0.call(request);
        Box::pin(async move {
            let mut response = calling.await?;
            check(response.headers_mut());
            Ok(response.map(CheckedBody))
        })
    }
}

pub(crate) struct CheckedBody(Body);

impl http_body::Body for CheckedBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map(checked)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

fn checked(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            check(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(data) => data,
    }
}

fn check(headers: &mut HeaderMap) {
    let metadata = MetadataMap::from_headers(std::mem::take(headers));
    let readable = metadata.get_bin(DETAILS).is_none_or(|details| details.to_bytes().is_ok());
    *headers = metadata.into_headers();
    if !readable {
        headers.remove(DETAILS);
    }
}
