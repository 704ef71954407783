import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acceptDelivery } from './accept-delivery.ts';
import { claimWork } from '../features/unattended/durable/store.ts';
import { type DeliveryRow, listDeliveries, pruneDeliveries, sameMs } from '../features/unattended/webhooks/store.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { migrations, operations } from './registry.ts';

const atMs = Date.UTC(2026, 0, 1);
const digest = (letter: string) => letter.repeat(43);
const delivery = (id: string, more: Partial<DeliveryRow> = {}): DeliveryRow => ({
  id,
  mappingId: 'm',
  action: 'agent',
  ownState: null,
  liveKey: null,
  senderId: null,
  bodyDigest: digest('b'),
  bodyBytes: 2,
  agentId: 'default',
  conversationRef: 'cv_1',
  sessionKey: 'webhook:m',
  message: 'Look',
  remoteAddress: null,
  traceId: '0'.repeat(32),
  replayOf: null,
  receivedAtMs: atMs,
  ...more,
});
const intake = (row: DeliveryRow) => ({
  delivery: row,
  sameSinceMs: row.receivedAtMs - sameMs,
  workId: `wi_${row.id}`,
  fits: false,
  template: 'Look',
  mappingPrincipalId: 'webhook:m',
  auditId: `au_${row.id}`,
  principalId: 'webhook:m',
  event: undefined,
});

test('a delivery accepted under an earlier schema is recognized by its shorter key, and its work is done', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-hooks-'));
  try {
    {
      await using old = await openInlineDb({ dataDir, migrations: migrations.filter(({ id }) => id < '046'), operations });
      await old.write(acceptDelivery, intake(delivery('wd_1', { liveKey: `${digest('b')}.${digest('i')}` })));
      await old.write(acceptDelivery, intake(delivery('wd_2', { liveKey: `${digest('c')}.` })));
    }
    await using db = await openInlineDb({ dataDir, migrations, operations });
    const again = (id: string, liveKey: string, receivedAtMs = atMs + 1) => db.write(acceptDelivery, intake(delivery(id, { liveKey, receivedAtMs })));
    const [b, c, i, j] = ['b', 'c', 'i', 'j'].map((letter) => letter.repeat(22));
    expect(await again('wd_3', `${b}.${i}`)).toEqual({ isNew: false, isKnownBody: true });
    expect(await again('wd_4', `${c}.`)).toEqual({ isNew: false, isKnownBody: true });
    expect(await again('wd_5', `${b}.${j}`)).toEqual({ isNew: true, isKnownBody: true });
    // A day later neither key nor body prevents a new turn.
    expect(await again('wd_6', `${b}.${i}`, atMs + sameMs)).toEqual({ isNew: true, isKnownBody: true });
    expect(await again('wd_7', `${c}.`, atMs + 2 * sameMs)).toEqual({ isNew: true, isKnownBody: false });
    const shown = await db.read(listDeliveries, { sinceMs: 0, limit: 9 });
    expect(shown.map(({ id, repeats }) => [id, repeats])).toEqual([
      ['wd_7', 0],
      ['wd_6', 0],
      ['wd_5', 0],
      ['wd_2', 1],
      ['wd_1', 1],
    ]);
    const due = { owner: 'o', kinds: [{ kind: 'webhook', free: 2 }], held: [], leaseUntilMs: atMs + 9, atMs };
    expect((await db.write(claimWork, due)).map(({ id, key }) => [id, key])).toEqual([
      ['wi_wd_1', 'wd_1'],
      ['wi_wd_2', 'wd_2'],
    ]);
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

test('deliveries that are too old or too many are removed, the oldest first and in batches', async () => {
  await using db = await openInlineDb({ migrations, operations });
  for (const n of [1, 2, 3, 4, 5, 6]) await db.write(acceptDelivery, intake(delivery(`wd_${n}`, { receivedAtMs: atMs + n })));
  const left = async (prune: { beforeMs: number; kept: number; limit: number }) => [
    await db.write(pruneDeliveries, prune),
    (await db.read(listDeliveries, { sinceMs: 0, limit: 9 })).map(({ id }) => id.slice(3)).join(''),
  ];
  expect(await left({ beforeMs: atMs + 4, kept: 9, limit: 2 })).toEqual([2, '6543']);
  expect(await left({ beforeMs: atMs + 4, kept: 9, limit: 2 })).toEqual([1, '654']);
  expect(await left({ beforeMs: atMs + 4, kept: 9, limit: 2 })).toEqual([0, '654']);
  expect(await left({ beforeMs: 0, kept: 1, limit: 9 })).toEqual([2, '6']);
});
