//! One bidirectional stream of batches: opened when there is work, opened again with backoff when it is lost.
//!
//! A batch is made of what waits when the wire has room: a single request leaves at once, and under load batches grow by
//! themselves. Requests are taken over at any time, also while there is no stream, and those that were given up are
//! thrown out: what is kept is what callers wait for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::backoff::Backoff;
use crate::error::{Ended, Error, ErrorKind, Failure, Result};
use crate::link::{Link, Opened};
use crate::raw_codec::RawCodec;
use crate::send_window::{Batch, Item, SendWindow, WINDOW};
use crate::sent::Sent;
use crate::tasks::Tasks;

/// How long a request that was given up may be kept.
const SWEEP: Duration = Duration::from_secs(1);

/// How long a batch waits for callers that were just answered and come back with their next requests. So they travel
/// together, and not in batches of a few.
const TOGETHER: Duration = Duration::from_micros(100);

/// What the broker says to a batch.
#[derive(Debug)]
pub(crate) enum Answers<A> {
    /// To each request, in order.
    Each(Vec<Result<A>>),
    /// It did nothing of the whole batch this time.
    Refused(Error),
}

/// Turns requests into batches, and the answer to a batch into an answer to each request.
pub(crate) trait Codec: Send + 'static {
    type Work: Send + 'static;
    type Answer: Send + 'static;
    type Response: prost::Message + Default + Send + 'static;
    const PATH: &'static str;
    /// How long after it was first sent a batch whose answer was lost may be sent again. `None` is for ever.
    const REPEATABLE: Option<Duration>;

    /// Takes from the front what fits into one batch, and skips what nobody waits for any more.
    fn make(
        &mut self,
        gathered: &mut VecDeque<Item<Self::Work, Self::Answer>>,
    ) -> Option<Batch<Self::Work, Self::Answer>>;

    /// What a response says to a batch. Fails when it is not one to the batch.
    fn answers(
        &self,
        batch: &Batch<Self::Work, Self::Answer>,
        response: Self::Response,
    ) -> Result<Answers<Self::Answer>>;
}

/// Carries requests to the broker, over lost connections, until they are answered or their callers have gone.
pub(crate) struct BatchStream<C: Codec> {
    submit: mpsc::UnboundedSender<Item<C::Work, C::Answer>>,
}

impl<C: Codec> BatchStream<C> {
    /// Starts the task of the stream. It makes a connection when there is work, and ends with the client or when nobody
    /// can submit any more.
    pub(crate) fn start(link: Arc<Link>, codec: C, tasks: &Tasks) -> Self {
        let (submit, submitted) = mpsc::unbounded_channel();
        let until = tasks.clone();
        tasks.spawn(async move {
            let mut runner = Runner { link, codec, intake: Intake::new(submitted), window: SendWindow::new() };
            let _ = until.until_closed(runner.serve_all()).await;
            runner.intake.close();
            runner.fail_all(&Error::closed());
        });
        Self { submit }
    }

    /// Hands work over. Dropping the receiver gives it up. `sent` tells the caller whether it may have been done.
    pub(crate) fn submit(&self, work: C::Work, sent: Sent) -> oneshot::Receiver<Result<C::Answer>> {
        let (reply, answer) = oneshot::channel();
        if let Err(refused) = self.submit.send(Item::new(work, reply, sent)) {
            refused.0.answer(Err(Error::closed()));
        }
        answer
    }
}

/// What was submitted and is in no batch yet.
struct Intake<W, A> {
    submitted: mpsc::UnboundedReceiver<Item<W, A>>,
    gathered: VecDeque<Item<W, A>>,
    sweep: Interval,
    /// Nobody can submit any more.
    over: bool,
}

impl<W, A> Intake<W, A> {
    fn new(submitted: mpsc::UnboundedReceiver<Item<W, A>>) -> Self {
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { submitted, gathered: VecDeque::new(), sweep, over: false }
    }

    /// Waits until more was submitted. Returns false when nothing will be. Can be dropped at any time.
    async fn more(&mut self) -> bool {
        loop {
            tokio::select! {
                item = self.submitted.recv() => {
                    self.over = item.is_none();
                    self.gathered.extend(item);
                    return !self.over;
                }
                _ = self.sweep.tick(), if !self.gathered.is_empty() => self.gathered.retain(Item::waits),
            }
        }
    }

    fn gather(&mut self) {
        while let Ok(item) = self.submitted.try_recv() {
            self.gathered.push_back(item);
        }
    }

    /// Lets so many callers that were just answered come back. One that is alone waits for nobody.
    async fn gather_back(&mut self, answered: usize) {
        self.gather();
        // Not the clock of the runtime, which stands still in some tests.
        let since = std::time::Instant::now();
        while answered > 1 && self.gathered.len() < answered && since.elapsed() < TOGETHER {
            tokio::task::yield_now().await;
            self.gather();
        }
    }

    fn close(&mut self) {
        self.submitted.close();
        self.gather();
    }
}

struct Runner<C: Codec> {
    link: Arc<Link>,
    codec: C,
    intake: Intake<C::Work, C::Answer>,
    window: SendWindow<C::Work, C::Answer>,
}

impl<C: Codec> Runner<C> {
    async fn serve_all(&mut self) {
        let mut backoff = Backoff::new();
        let mut keys = 0;
        loop {
            while self.window.is_empty() && self.intake.gathered.is_empty() {
                if !self.intake.more().await {
                    return;
                }
            }
            let ended = match self.link.open() {
                Ok(opened) => {
                    let (failure, answered) = self.exchange(opened.clone()).await;
                    if answered {
                        backoff.reset();
                        keys = 0;
                    }
                    let ended = Ended::of_stream(failure, &opened.address);
                    self.link.ended(&opened, &ended);
                    ended
                }
                Err(error) => Ended::Broken(error),
            };
            if self.intake.over {
                return;
            }
            keys += u32::from(ended.is_key_ended());
            let wait = backoff.after(self.take_end(ended, keys < 2));
            self.rest(wait).await;
        }
    }

    /// Uses one stream, from opening it to its end. Returns whether the broker has answered anything.
    async fn exchange(&mut self, opened: Opened) -> (Failure, bool) {
        let mut answered = false;
        let Err(failure) = self.exchange_until(opened, &mut answered).await;
        (failure, answered)
    }

    async fn exchange_until(
        &mut self,
        mut opened: Opened,
        answered: &mut bool,
    ) -> std::result::Result<std::convert::Infallible, Failure> {
        // There is always room: the window is not larger.
        let (wire, outbound) = mpsc::channel(WINDOW);
        let request = self.link.request(ReceiverStream::new(outbound));
        let opening = async move {
            opened.grpc.ready().await.map_err(|error| tonic::Status::from_error(Box::new(error)))?;
            let codec = RawCodec::<C::Response>::new();
            opened.grpc.streaming(request, PathAndQuery::from_static(C::PATH), codec).await
        };
        tokio::pin!(opening);
        self.intake.gather();
        let mut answers = loop {
            self.write(&wire);
            tokio::select! {
                opened = &mut opening => break opened?.into_inner(),
                more = self.intake.more() => if !more { return Err(OVER) },
            }
        };
        loop {
            self.write(&wire);
            tokio::select! {
                answer = answers.next() => match answer {
                    Some(answer) => {
                        let count = self.take_answer(answer?)?;
                        self.link.works();
                        *answered = true;
                        self.intake.gather_back(count).await;
                    }
                    None => return Err(Failure::Lost("the broker closed the stream")),
                },
                more = self.intake.more() => {
                    if !more {
                        return Err(OVER);
                    }
                    // Let the callers that are ready now join the batch.
                    tokio::task::yield_now().await;
                    self.intake.gather();
                }
            }
        }
    }

    fn write(&mut self, wire: &mpsc::Sender<Bytes>) {
        let now = Instant::now();
        if let Some(repeatable) = C::REPEATABLE {
            self.window.end_older(now, repeatable, Error::forgotten);
        }
        while let Ok(room) = wire.try_reserve() {
            match self.window.next(now, || self.codec.make(&mut self.intake.gathered)) {
                Some(data) => room.send(data),
                None => return,
            }
        }
    }

    /// Returns how many callers have an answer.
    fn take_answer(&mut self, response: C::Response) -> std::result::Result<usize, Failure> {
        let unasked = || Error::own(Error::Internal, "the broker sent an answer, but no request waits for one");
        let batch = self.window.answered().ok_or_else(unasked).map_err(Failure::Unexpected)?;
        let count = batch.items.len();
        match self.codec.answers(&batch, response) {
            Ok(Answers::Each(answers)) => batch.answer(answers),
            // The broker refuses for a while before it looks at the number, so this says nothing of earlier sendings.
            Ok(Answers::Refused(error)) if batch.resent && error.is_retryable() && !error.names_owner() => {
                self.window.again(batch);
                return Err(Failure::PutOff(error));
            }
            Ok(Answers::Refused(error)) => batch.refuse(&error),
            Err(error) => {
                batch.fail(&error);
                return Err(Failure::Unexpected(error));
            }
        }
        Ok(count)
    }

    /// Decides what becomes of the batches in flight. Returns how long the broker asks to wait.
    fn take_end(&mut self, ended: Ended, again: bool) -> Duration {
        let wait = match &ended {
            Ended::Refused(error, _) => error.retry_after(),
            _ => Duration::ZERO,
        };
        match ended {
            Ended::Refused(error, _) if error.names_owner() => self.blame(&error),
            Ended::Lost { sent, .. } => self.window.lost(sent),
            // What was in flight may have been done all the same, so it is sent again as it was.
            Ended::Refused(error, _) if error.is_retryable() => self.window.put_off(&error),
            Ended::Refused(error, _) if again && error.kind() == Some(ErrorKind::KeyEnded) => self.window.lost(true),
            // No other batch could succeed.
            Ended::Broken(error) | Ended::Refused(error, Code::Unauthenticated) => self.fail_all(&error),
            Ended::Refused(error, _) => self.blame(&error),
        }
        wait
    }

    fn blame(&mut self, error: &Error) {
        if let Some(batch) = self.window.refused() {
            batch.refuse(error);
        }
    }

    fn fail_all(&mut self, error: &Error) {
        for batch in self.window.drain() {
            batch.fail(error);
        }
        for item in self.intake.gathered.drain(..) {
            item.answer(Err(error.clone()));
        }
    }

    async fn rest(&mut self, wait: Duration) {
        let rested = sleep(wait);
        tokio::pin!(rested);
        loop {
            tokio::select! {
                () = &mut rested => return,
                more = self.intake.more() => if !more { return },
            }
        }
    }
}

/// There is nobody left to serve.
const OVER: Failure = Failure::Lost("nobody waits");
