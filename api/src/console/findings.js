// What is wrong and what to do, from what the API answers: of itself, its stream, its node, the webhooks and their quotas.

const STREAM = '`sluice doctor --config FILE` says what each server in [[geyser.endpoints]] answers; name another one there where it stays';

// Why the API is not ready, by the words of `/health/ready`; the first that fits.
const REASONS = [
  [/^store/, 'see whether the database runs and its disk has room; the log has the cause. It goes on by itself, and nothing is lost while the slots can be read again'],
  [/slots behind the node/, `the stream is behind the chain: wait where it has just started, else look at the network and the machine's load; ${STREAM}`],
  [/by the chain's time/, 'compare the clock of this machine with a time server (`timedatectl`); where it is right, the node or the cluster stands still'],
  [/no slot was|silent/, `the stream is silent, or the chain stands still: compare with an explorer of the cluster; ${STREAM}`],
  [/snapshot|reading the chain:.*;/, 'the node at chain.rpc-url does not give the accounts: it must allow getProgramAccounts; look at its limits, or name another one'],
  [/reading the chain|replaying the chain|the chain is read/, 'wait: it starts or catches up. Where it does not get on, `sluice doctor --config FILE` says which part is slow'],
  [/asked for again|cannot replay/, 'no server keeps the slots that were missed: the chain is read anew by itself; name a server in [[geyser.endpoints]] that replays more'],
  [/refused the request/, 'the server does not take the request: look at its x-token and its limits in [[geyser.endpoints]]; its own words stand in the log'],
  [/shutting down/, 'it is being stopped: start it again, or ask another process'],
  [/stream/, `the stream is gone, and is asked for again by itself; ${STREAM}`],
  [/^market/, `the log names what is missing; ${STREAM}`],
];

const NOT_KNOWN = 'the log has the cause';

// Slots behind the stream that a start or a catch-up explains no more, as in the alerts for Prometheus.
const BEHIND_SLOTS = 32;

// Of the calls of the node, the part that may fail.
const CALLS_THAT_FAIL = 0.1;

const of = (samples, wanted) => samples.filter(({ name }) => name === wanted);

function ofStream(samples) {
  const [lag] = of(samples, 'sluice_api_market_lag_slots');
  const down = of(samples, 'sluice_api_stream_server_connected').filter(({ value }) => value === 0);
  const contradicted = of(samples, 'sluice_api_stream_server_contradictions_total').filter(({ value }) => value > 0);
  return [
    ...(lag !== undefined && lag.value > BEHIND_SLOTS ? [[`market: ${lag.value} slots behind its stream`, `wait: a catch-up takes seconds. Where it stays, the servers do not replay what is missing; ${STREAM}`]] : []),
    ...down.map(({ labels }) => [`stream: ${labels.server} is not connected`, `the other servers go on; without any there are no quotes and no events. ${STREAM}`]),
    ...contradicted.map(({ labels }) => [`stream: ${labels.server} has shown another chain than the finalized one`, 'compare its blockhashes with those of the cluster, and take it out of [[geyser.endpoints]] where they differ']),
  ];
}

function ofNode(samples) {
  const calls = of(samples, 'sluice_api_rpc_calls_total');
  const sum = (rows) => rows.reduce((all, { value }) => all + value, 0);
  const [failed, all] = [sum(calls.filter(({ labels }) => labels.outcome !== 'answered')), sum(calls)];
  if (all === 0 || failed <= all * CALLS_THAT_FAIL) return [];
  return [[`node: ${failed} of ${all} calls have failed since the start`, 'transactions cannot be built without the node at chain.rpc-url: look at its limits, or name another one']];
}

const watches = ({ accounts = [], programs = [], tokenOwners = [] }) => accounts.length + programs.length + tokenOwners.length > 0;

// `lastError` is why the newest attempt failed, null where it did not.
function ofWebhook({ id, active, filters, status, lastError = null }) {
  if (!active) {
    if (status.disabledReason === null) return [];
    return [[`webhook ${id} was switched off: ${status.disabledReason}`, 'repair the endpoint or give the webhook another URL, and resume it; it is told which slots it has not watched']];
  }
  if (status.refused !== null) return [[`webhook ${id}: the stream refuses its filter: ${status.refused}`, 'edit the filter, or name a server that takes it; until then it is told of nothing']];
  const found = [];
  if (watches(filters) && status.filter.inForceSlot === null) {
    found.push([`webhook ${id}: its filter is not in force yet`, 'wait a moment after a change. Where it stays, no indexer leads: `GET /health/ready` of the indexer says why; start `sluice indexer` where none runs']);
  }
  if (lastError !== null) found.push([`webhook ${id}: its endpoint fails: ${lastError}`, 'its deliveries on the page Webhooks show what it answered; repair it, and what was given up can be sent once more there']);
  return found;
}

// What the stream does not show it shows no webhook of a kind, so it is said once. The answer has the remedy in it.
function ofNotTold(webhooks) {
  const partly = webhooks.filter(({ active, status }) => active && status.refused === null && status.notTold !== undefined);
  if (partly.length === 0) return [];
  const others = partly.length > 1 ? ` and ${partly.length - 1} more` : '';
  return [[`webhook ${partly[0].id}${others}: not all that is asked for is told`, `not told is ${partly[0].status.notTold}`]];
}

const QUOTAS = [
  ['webhooks', 'webhooks', 'no more are created: delete one'],
  ['addresses', 'watched addresses', 'no more are taken: remove some from a webhook'],
  ['storedBytes', 'bytes of stored messages', 'the oldest are removed, and nothing is created, backfilled or redelivered: repair endpoints that fail, and skip or delete what nobody needs'],
  ['deliverySlots', 'deliveries at once', 'the others wait: make endpoints answer sooner'],
];

const MORE = '; or ask who made the key for a higher limit (`sluice keys limit`)';

function ofUsage(usage) {
  const full = QUOTAS.filter(([member]) => usage[member].limit !== null && Number(usage[member].used) >= Number(usage[member].limit));
  const found = full.map(([member, words, todo]) => [`quota: ${usage[member].used} of ${usage[member].limit} ${words}`, todo + MORE]);
  if (usage.messagesPerSecond.throttled) found.push([`quota: ${usage.messagesPerSecond.limit} messages in a second`, `the others wait, and are sent later: narrow the filters${MORE}`]);
  return found;
}

// All of it, the most urgent first: pairs of what is wrong and what to do. What could not be asked for is null.
export function findings({ reasons, samples, webhooks, usage }) {
  return [
    ...reasons.map((reason) => [reason, REASONS.find(([pattern]) => pattern.test(reason))?.[1] ?? NOT_KNOWN]),
    ...ofStream(samples ?? []),
    ...ofNode(samples ?? []),
    ...(webhooks ?? []).flatMap(ofWebhook),
    ...ofNotTold(webhooks ?? []),
    ...(usage === null ? [] : ofUsage(usage)),
  ];
}
