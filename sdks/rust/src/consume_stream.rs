//! The `Consume` stream of one consumer: prefetches within the credit, reports what was handed, says goodbye.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::backoff::Backoff;
use crate::error::{Ended, Failure, Result};
use crate::extension::Holding;
use crate::link::Opened;
use crate::members::{Finder, MAX_HOPS, Member};
use crate::message::Held;
use crate::prefetch::{Delivery, Prefetch, Report};
use crate::proto::{self, ConsumeRequest, ConsumeResponse};
use crate::sent::Sent;
use crate::settle::Action;
use crate::tasks::Tasks;

/// The broker learns within this time what the application was handed.
const REPORT_EVERY: Duration = Duration::from_millis(5);

/// How long the broker may take to answer the goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

const VISIBILITY_TIMEOUT: &str = "fila-visibility-timeout-ms";

type Received = std::result::Result<(), Failure>;

pub(crate) struct ConsumeStream {
    pub(crate) queue: Arc<str>,
    pub(crate) members: Finder,
    pub(crate) prefetch: Arc<Prefetch>,
    pub(crate) holding: Arc<Holding>,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: Tasks,
}

impl ConsumeStream {
    /// Receives until it is stopped, or until the broker refuses the stream.
    pub(crate) async fn run(self) -> Result<()> {
        let mut backoff = Backoff::new();
        let (mut hops, mut keys) = (0, 0);
        while !self.stop.is_cancelled() {
            let Some(member) = self.members.of(&self.queue) else { return Ok(()) };
            let opened = member.link.open()?;
            let mut delivered = false;
            let received = self.receive(&member, opened.clone(), &mut delivered).await;
            if delivered {
                backoff.reset();
                keys = 0;
            }
            let ended = match received {
                Ok(()) => return Ok(()),
                Err(failure) => Ended::of_stream(failure, &opened.address),
            };
            member.link.ended(&opened, &ended);
            self.give_back(&member, self.prefetch.take_back());
            let named = match &ended {
                Ended::Refused(error, _) => self.members.named(&self.queue, error),
                _ => false,
            };
            if named && hops < MAX_HOPS {
                hops += 1;
                continue;
            }
            hops = 0;
            keys += u32::from(ended.is_key_ended());
            let goes_on = match &ended {
                Ended::Lost { .. } => true,
                Ended::Refused(error, _) => error.is_retryable() || (ended.is_key_ended() && keys == 1),
                Ended::Broken(_) => false,
            };
            let error = ended.error();
            if !goes_on {
                return Err(error);
            }
            let wait = backoff.after(error.retry_after());
            self.stop.run_until_cancelled(sleep(wait)).await;
        }
        Ok(())
    }

    /// Uses one stream, from opening it to its end. `Ok` means that the consumer was stopped.
    async fn receive(&self, member: &Arc<Member>, mut opened: Opened, delivered: &mut bool) -> Received {
        // Reports go through this channel one by one: when there is room again, the last one is on its way.
        let (wire, outbound) = mpsc::channel(1);
        let credit = self.prefetch.begin();
        let first = ConsumeRequest { queue: self.queue.to_string(), max_in_flight: Some(credit), handed: 0 };
        let _ = wire.try_send(first);
        let request = member.link.request(ReceiverStream::new(outbound));
        let mut grpc = opened.grpc.clone();
        let open = async {
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            let path = PathAndQuery::from_static("/fila.v1.FilaService/Consume");
            grpc.streaming(request, path, ProstCodec::default()).await
        };
        let Some(response) = self.stop.run_until_cancelled(open).await else { return Ok(()) };
        let response = response?;
        let timeout_ms =
            response.metadata().get(VISIBILITY_TIMEOUT).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(timeout_ms) = timeout_ms {
            self.holding.note_timeout(Duration::from_millis(timeout_ms));
        }
        member.link.works();
        let mut responses: Streaming<ConsumeResponse> = response.into_inner();
        let mut reporter = Reporter { told: Report { handed: 0, credit, isolated: false }, at: Instant::now() };
        loop {
            let due = reporter.due(&self.prefetch);
            tokio::select! {
                () = self.stop.cancelled() => break,
                response = responses.next() => match response {
                    Some(response) => {
                        let response = response?;
                        *delivered = true;
                        self.take(response, member)?;
                    }
                    None => return Err(Failure::Lost("the broker ended the stream")),
                },
                // Asked for once more than needed after each wake-up, which costs nothing.
                () = self.prefetch.changed.notified(), if due.is_none() => {}
                () = async { if let Some(due) = due { sleep_until(due).await } }, if due.is_some() => {
                    let telling = reporter.tell(&self.prefetch, &wire, member, &mut opened);
                    match self.stop.run_until_cancelled(telling).await {
                        Some(Ok(())) => {}
                        Some(Err(Untold::Ended)) => return Err(self.end_of(responses).await),
                        Some(Err(Untold::Failed(status))) => return Err(status.into()),
                        None => break,
                    }
                }
            }
        }
        self.say_goodbye(&reporter, wire, responses, member).await;
        Ok(())
    }

    fn take(&self, response: ConsumeResponse, member: &Arc<Member>) -> Received {
        if let Ok(timeout_ms @ 1..) = u64::try_from(response.visibility_timeout_ms) {
            self.holding.note_timeout(Duration::from_millis(timeout_ms));
        }
        let mut leases: HashMap<String, Arc<str>> = HashMap::new();
        let delivery = |message: proto::Message| {
            let lease = message.metadata.as_ref().map_or("", |metadata| &metadata.lease_id);
            let lease = match leases.get(lease) {
                Some(known) => known.clone(),
                None => leases.entry(lease.to_owned()).or_insert(lease.into()).clone(),
            };
            let held = Held::hold(&self.holding, self.queue.clone(), &message.id, lease, member.clone());
            Delivery { message, held }
        };
        if self.prefetch.deliver(response.messages.into_iter().map(delivery).collect()) {
            return Ok(());
        }
        // Those that wait have lost their leases, or this is no broker. Either way the next stream begins with none.
        Err(Failure::Lost("more was delivered than may be in flight"))
    }

    /// Half-closes: what was never handed goes back without an attempt, what was handed stays leased.
    async fn say_goodbye(
        &self,
        reporter: &Reporter,
        wire: mpsc::Sender<ConsumeRequest>,
        mut responses: Streaming<ConsumeResponse>,
        member: &Arc<Member>,
    ) {
        // From here on the application gets nothing more, so that the last report stays true.
        let reported = self.prefetch.end(None);
        let report = self.prefetch.report();
        let goodbye = async {
            if report.handed > reporter.told.handed {
                let _ = wire.send(ConsumeRequest { handed: report.handed, ..ConsumeRequest::default() }).await;
            }
            drop(wire);
            // What still arrives is on its way back.
            while let Some(Ok(_)) = responses.next().await {}
        };
        let _ = timeout(GOODBYE, goodbye).await;
        // The broker believes that the application has it.
        self.give_back(member, reported);
    }

    /// Nothing can be sent any more: the stream has ended, and says why.
    async fn end_of(&self, mut responses: Streaming<ConsumeResponse>) -> Failure {
        let end = async {
            while let Some(response) = responses.next().await {
                response?;
            }
            Ok::<(), Status>(())
        };
        match timeout(GOODBYE, end).await {
            Ok(Err(status)) => status.into(),
            Ok(Ok(())) | Err(_) => Failure::Lost("the broker ended the stream"),
        }
    }

    /// Prefetched messages of a lost stream are no longer ours. If the broker has not noticed yet, it is told.
    fn give_back(&self, member: &Arc<Member>, deliveries: impl IntoIterator<Item = Delivery>) {
        let release = |delivery: Delivery| {
            delivery.held.settle();
            member.settles.submit(delivery.held.settlement(Action::Release), Sent::default())
        };
        let answers: Vec<_> = deliveries.into_iter().map(release).collect();
        if answers.is_empty() {
            return;
        }
        // Its streams end when nobody has it any more.
        let member = member.clone();
        self.tasks.spawn(async move {
            let all = async {
                for answer in answers {
                    let _ = answer.await;
                }
            };
            let _ = timeout(GOODBYE, all).await;
            drop(member);
        });
    }
}

/// What the broker was told last, and when.
struct Reporter {
    told: Report,
    at: Instant,
}

/// Why a report did not get through.
enum Untold {
    /// The stream takes no more.
    Ended,
    Failed(Status),
}

impl Reporter {
    /// When to report; `None` when there is nothing new.
    fn due(&self, prefetch: &Prefetch) -> Option<Instant> {
        let report = prefetch.report();
        if report.isolated || report.credit != self.told.credit {
            return Some(Instant::now());
        }
        (report.handed != self.told.handed).then_some(self.at + REPORT_EVERY)
    }

    async fn tell(
        &mut self,
        prefetch: &Prefetch,
        wire: &mpsc::Sender<ConsumeRequest>,
        member: &Member,
        opened: &mut Opened,
    ) -> std::result::Result<(), Untold> {
        let report = prefetch.report();
        let max_in_flight = (report.credit != self.told.credit).then_some(report.credit);
        let request = ConsumeRequest { queue: String::new(), max_in_flight, handed: report.handed };
        wire.send(request).await.map_err(|_| Untold::Ended)?;
        (self.told, self.at) = (Report { isolated: false, ..report }, Instant::now());
        if report.isolated {
            // An answer to a later request on the same connection: the report has arrived.
            let _ = wire.reserve().await.map_err(|_| Untold::Ended)?;
            round_trip(member, opened).await.map_err(Untold::Failed)?;
            prefetch.confirm();
        }
        Ok(())
    }
}

async fn round_trip(member: &Member, opened: &mut Opened) -> std::result::Result<(), Status> {
    let path = PathAndQuery::from_static("/fila.v1.FilaService/Describe");
    let codec = ProstCodec::<proto::DescribeRequest, proto::DescribeResponse>::default();
    let request = member.link.request(proto::DescribeRequest {});
    opened.grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
    opened.grpc.unary(request, path, codec).await?;
    Ok(())
}
