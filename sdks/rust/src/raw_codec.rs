//! A gRPC codec whose requests are encoded already: a batch that is sent twice is encoded once.

use std::marker::PhantomData;

use bytes::{BufMut as _, Bytes};
use tonic::Status;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic_prost::ProstDecoder;

pub(crate) struct RawCodec<R>(PhantomData<R>);

impl<R> RawCodec<R> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R: prost::Message + Default + Send + 'static> Codec for RawCodec<R> {
    type Encode = Bytes;
    type Decode = R;
    type Encoder = RawEncoder;
    type Decoder = ProstDecoder<R>;

    fn encoder(&mut self) -> RawEncoder {
        RawEncoder
    }

    fn decoder(&mut self) -> ProstDecoder<R> {
        ProstDecoder::default()
    }
}

pub(crate) struct RawEncoder;

impl Encoder for RawEncoder {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}
