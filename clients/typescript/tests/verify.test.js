// Verification of webhooks, against the scheme's official library.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { VerificationError, webhooks } from '@sluice/client';
import { Webhook } from 'standardwebhooks';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const id = 'msg_000000000000000586a8240185e5155b503e16cba7e0c97224422e02b6a9782e';
const seconds = 1_700_000_000;
const now = seconds * 1_000;
const body = '{"type":"heartbeat","sequence":18446744073709551615,"slot":5,"data":{"lastSequence":4,"text":"é"}}';

const sign = (key, text = body, at = seconds) => new Webhook(key).sign(id, new Date(at * 1_000), text);

const headers = (signature = sign(secret), changes = {}) => ({
  'webhook-id': id,
  'webhook-timestamp': String(seconds),
  'webhook-signature': signature,
  ...changes,
});

const refused = (...call) => assert.rejects(webhooks.verify(...call), VerificationError);

test("a delivery signed by the scheme's own library verifies, whatever carries it", async () => {
  const bodies = [body, Buffer.from(body), gzipSync(body)];
  const carried = [
    headers(),
    new Headers(headers()),
    { 'Webhook-Id': id, 'Webhook-Timestamp': String(seconds), 'Webhook-Signature': [sign(secret)] },
  ];
  for (const text of bodies) {
    for (const carriedBy of carried) {
      const delivery = await webhooks.verify(text, carriedBy, secret, { now });
      assert.equal(delivery.id, id);
      assert.equal(delivery.sent.getTime(), now);
      assert.equal(delivery.message.sequence, 18446744073709551615n);
      assert.deepEqual(delivery.message.data, { lastSequence: 4n, text: 'é' });
    }
  }
});

test('an asymmetric signature verifies by the public key, and by nothing else', async () => {
  // Of the secret above; made with Node's own Ed25519.
  const publicKey = 'whpk_EVcMhRPaI5bkX7v8w4055FIPiiS1vp2UEuSBm/Aka5M=';
  const signature =
    'v1a,dN4XWFw8rZ0KLuPcZ/iVQSMXJtS55X5bBZ64RpDMDFsxF5iaJ/Tc9qOa9oTSrhi91j9viHE2spiY4YFwux0hBw==';
  for (const carried of [signature, `${sign(other)} ${signature}`]) {
    const delivery = await webhooks.verify(body, headers(carried), publicKey, { now });
    assert.equal(delivery.id, id);
  }
  const both = headers(`${sign(secret)} ${signature}`);
  assert.equal((await webhooks.verify(body, both, secret, { now })).id, id);
  await refused(body, headers(sign(secret)), publicKey, { now });
  await refused(body, headers(signature), secret, { now });
  await refused(`${body} `, headers(signature), publicKey, { now });
  await refused(body, headers(signature.replace('v1a,', 'v1,')), publicKey, { now });
  await refused(body, headers(), `whpk_${Buffer.alloc(32, 9).toString('base64')}`, { now });
  for (const unusable of ['whpk_', 'whpk_AAAA', 'whpk_!']) {
    await assert.rejects(webhooks.verify(body, headers(signature), unusable, { now }), TypeError);
  }
});

test('a batch is read message by message, each with its id', async () => {
  const batch = `[{"id":"msg_a","type":"gap","sequence":1},{"id":"msg_b","type":"gap","sequence":2}]`;
  const { id: ofBatch, message, messages } = await webhooks.verify(batch, headers(sign(secret, batch)), secret, { now });
  assert.equal(ofBatch, id);
  assert.deepEqual(
    messages.map(({ id, sequence }) => [id, sequence]),
    [
      ['msg_a', 1n],
      ['msg_b', 2n],
    ],
  );
  assert.equal(message, messages[0]);
  const alone = await webhooks.verify(body, headers(), secret, { now });
  assert.deepEqual(alone.messages, [{ ...alone.message, id }]);
  await refused('[]', headers(sign(secret, '[]')), secret, { now });
});

test("the scheme's published example verifies", async () => {
  const example = {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    body: '{"test": 2432232314}',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
  };
  const at = { now: 1_614_265_330_000 };
  const { message } = await webhooks.verify(example.body, example.headers, example.secret, at);
  assert.deepEqual(message, { test: 2432232314n });
});

test('one signature of several is enough, and one secret of several', async () => {
  const rotated = headers(`v1,AAAA v2,${sign(secret)} ${sign(other)} ${sign(secret)}`);
  await webhooks.verify(body, rotated, secret, { now });
  await webhooks.verify(body, headers(), [other, secret], { now });
  await refused(body, headers(sign(other)), secret, { now });
  await refused(body, headers(), [], { now });
});

test('what was not signed is refused', async () => {
  const tampered = Buffer.from(body);
  tampered[tampered.length - 2] ^= 1;
  await refused(tampered, headers(), secret, { now });
  await refused(`${body} `, headers(), secret, { now });
  await refused(body, headers(sign(secret), { 'webhook-id': `${id}x` }), secret, { now });
  await refused(body, headers(sign(secret), { 'webhook-timestamp': String(seconds + 1) }), secret, { now });
  for (const signature of ['', 'v1,', 'v1', sign(secret).slice(3), sign(secret).slice(0, -4), `v1a${sign(secret)}`, 'v1,%']) {
    await refused(body, headers(signature), secret, { now });
  }
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    await refused(body, headers(sign(secret), { [name]: undefined }), secret, { now });
  }
  await refused(gzipSync(body).subarray(0, 20), headers(), secret, { now });
});

test('a delivery of another time is refused', async () => {
  for (const [difference, accepted] of [[300, true], [-300, true], [301, false], [-301, false]]) {
    const call = webhooks.verify(body, headers(), secret, { now: now + difference * 1_000 });
    await (accepted ? call : assert.rejects(call, VerificationError));
  }
  await webhooks.verify(body, headers(), secret, { now: now + 5_000_000, toleranceSeconds: 5_000 });
  await refused(body, headers(), secret, { now: NaN });
  for (const text of ['', '1e9', '-1', '0x10', `0${seconds}`, ` ${seconds}`, 'Infinity', '9'.repeat(16)]) {
    await refused(body, headers(sign(secret), { 'webhook-timestamp': text }), secret, { now });
  }
});

test('a secret that is none is a fault of the caller, and is not shown', async () => {
  for (const text of ['', 'whsec_', 'whsec_no base64!']) {
    await assert.rejects(webhooks.verify(body, headers(), text, { now }), (error) => {
      assert.ok(error instanceof TypeError);
      return !error.message.includes('no base64!');
    });
  }
});

test('a body that would not end is not unpacked to its end', async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  await refused(bomb, headers(), secret, { now });
});
