import { clearAgentConfig, deleteAgent, saveAgent } from '../../../packages/server/src/features/agents/agents/store.ts';
import { deleteBrowserProfile, saveBrowserProfile } from '../../../packages/server/src/features/environment/browser/store.ts';
import { deleteMcpServer, enableMcpServer, saveMcpServer } from '../../../packages/server/src/features/agents/mcp/store.ts';
import {
  type Asking,
  decide,
  dropRequests,
  expireDue,
  forgetDenials,
  type NewRequest,
} from '../../../packages/server/src/features/access/approvals/store.ts';
import {
  addPersons,
  deleteToken,
  insertToken,
  revokeSecret,
  recordRefusal,
  recordUses,
  replaceToken,
  rotateToken,
} from '../../../packages/server/src/features/access/tokens/store.ts';
import { keepKnownTime } from '../../../packages/server/src/features/operations/age-clock/store.ts';
import { appendBatch } from '../../../packages/server/src/features/operations/events/store.ts';
import { markInboxRead } from '../../../packages/server/src/features/unattended/inbox/store.ts';
import { writeAudit } from '../../../packages/server/src/kernel/audit.ts';
import { askApproval, withdrawApproval } from '../../../packages/server/src/transactions/ask-approval.ts';
import { escalate } from '../../../packages/server/src/transactions/escalate.ts';
import {
  agentId,
  atMs,
  count,
  differs,
  driver,
  type Driver,
  type Names,
  namesOf,
  principalId,
  quote,
  type Side,
  valueOf,
  liveBoot,
} from './driver.ts';
import { messageOf } from './rows.ts';

interface Round {
  readonly round: string;
}

const requests = 8;

const requestOf = (names: Names, index: number | string, call: number | string = index): NewRequest => ({
  id: names.id('ap', index),
  digest: names.id('call', call),
  conversationRef: names.ref(0),
  sessionKey: `hammer:${names.round}`,
  agentId: names.id('agent', 0),
  origin: 'rpc',
  traceId: '',
  tool: 'shell',
  action: 'run',
  reason: '',
  trustLevel: 'clean',
  paramsJson: '{}',
  paramsBytes: 2,
  createdAtMs: atMs,
  timeoutMs: 60_000,
  expiresAtMs: atMs + 60_000,
  chatJson: null,
  turnJson: null,
});

const askingOf = (request: NewRequest, perAgent = 1_000): Asking => ({
  request,
  bounds: { perAgent, inAll: 100_000 },
  approvalCacheMs: 0,
  denialCacheMs: 0,
  grantMs: 1_000_000,
  keepMs: 1_000_000,
  isRefused: false,
  waitsAt: liveBoot,
});

interface Decided {
  readonly asked: number;
  readonly limited: number;
  readonly decided: readonly string[];
  readonly used: readonly number[];
}

/** Requests for the same calls, decided by both; a grant is for one call. */
const approvals: Driver<Round, Decided> = {
  name: 'approvals',
  async prepare(db, names) {
    for (let index = 0; index < requests; index += 1) await db.write(askApproval, askingOf(requestOf(names, index)));
    return { round: names.round };
  },
  async run(writer, { round }, side: Side) {
    const names = namesOf(round);
    const asks = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const asking = askingOf(requestOf(names, `new-${index}-${side}`, `new-${index}`));
        return writer.write(askApproval, { ...asking, inbox: messageOf(names, `ask-${index}`, side) });
      }),
    );
    const limited = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const request = { ...requestOf(names, `limited-${index}-${side}`), agentId: names.id('agent', 'limited') };
        return writer.write(askApproval, askingOf(request, 5));
      }),
    );
    const by = { by: `decider-${side}`, reason: null, waited: [], atMs: atMs + 1, principalId, traceId: '', agentIds: null };
    const decided: string[] = [];
    await writer.race([
      ...Array.from({ length: requests }, (_, index) => async () => {
        const made = valueOf(await writer.write(decide, { ...by, id: names.id('ap', index), approved: index % 4 !== side }));
        for (const { id } of made?.decided ?? []) decided.push(id);
      }),
      async () => {
        const dropped = valueOf(await writer.write(dropRequests, { ids: [names.id('ap', 0), names.id('ap', 1)], atMs: atMs + 1 }));
        for (const { id } of dropped?.decided ?? []) decided.push(id);
      },
      async () => {
        const expired = valueOf(await writer.write(expireDue, { atMs: atMs + 1, id: names.id('ap', 2) }));
        for (const { id } of expired?.decided ?? []) decided.push(id);
      },
      () => writer.write(forgetDenials, { agentIds: [names.id('agent', 'none')], audit: names.audit(`forget-${side}`) }),
      () => writer.write(withdrawApproval, { id: names.id('ap', 'none'), opKey: names.id('op', 'none') }),
    ]);
    const used = await writer.all(
      Array.from({ length: requests }, (_, index) => async () => {
        const again = { ...requestOf(names, `again-${index}-${side}`, index), createdAtMs: atMs + 2 };
        return valueOf(await writer.write(askApproval, { ...askingOf(again), isRefused: true }))?.kind === 'allowed' ? 1 : 0;
      }),
    );
    return { asked: count(asks, (got) => got.kind === 'waits' && got.isNew), limited: count(limited, (got) => got.kind === 'waits'), decided, used };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const decided = [...first.decided, ...second.decided];
    const rows = await look(
      `select id, state, grant_state from approval where id like 'ap_${round}-%' and agent_id = ${quote(names.id('agent', 0))}`,
    );
    const [limited] = await look(`select count(*) as count from approval where agent_id = ${quote(names.id('agent', 'limited'))}`);
    const wrong: string[] = [];
    for (let index = 0; index < requests; index += 1) {
      const id = names.id('ap', index);
      const uses = (first.used[index] ?? 0) + (second.used[index] ?? 0);
      const [audits] = await look(`select count(*) as count from audit where action = 'approval.resolve' and target = ${quote(id)}`);
      const row = rows.find((other) => other['id'] === id);
      wrong.push(
        ...differs(`decisions of ${id} that were acknowledged`, decided.filter((other) => other === id).length, 1),
        ...differs(`audit rows of the decision of ${id}`, audits?.['count'], 1),
        ...(uses > 1 ? [`the grant of ${id} was used ${uses} times`] : []),
        ...(uses === 1 && row?.['grant_state'] !== 'used' ? [`the used grant of ${id} is ${String(row?.['grant_state'])}`] : []),
      );
    }
    return [
      ...wrong,
      ...differs('requests for the same calls', first.asked + second.asked, 4),
      ...differs('requests within the limit', first.limited + second.limited, 5),
      ...differs('rows within the limit', limited?.['count'], 5),
    ];
  },
};

const tokenOf = (names: Names, index: number, digest: string) => ({
  id: names.id('tk', index),
  digest,
  scopesJson: '[]',
  agentsJson: null,
  compatJson: null,
  person: null,
  limitsJson: null,
  createdAtMs: atMs,
  expiresAtMs: null,
});

interface Kept {
  readonly inserted: number;
  readonly rotated: number;
  readonly replaced: number;
  readonly deleted: number;
}

/** Tokens that both add, rotate, replace and delete: one of them does. */
const tokens: Driver<Round, Kept> = {
  name: 'tokens',
  async prepare(db, names) {
    for (const index of [1, 2, 3]) await db.write(insertToken, { row: tokenOf(names, index, names.id('digest', index)), audit: names.audit(index) });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const mine = (index: number) => names.id('digest', `${index}-${side}`);
    const [inserted, rotated, replaced, deleted] = await writer.all([
      () => writer.write(insertToken, { row: tokenOf(names, 0, mine(0)), audit: names.audit(`insert-${side}`) }),
      () =>
        writer.write(rotateToken, {
          id: names.id('tk', 1),
          oldDigest: names.id('digest', 1),
          newDigest: mine(1),
          atMs,
          audit: names.audit(`rotate-${side}`),
        }),
      () => writer.write(replaceToken, { row: tokenOf(names, 2, mine(2)), oldDigest: names.id('digest', 2), audit: names.audit(`replace-${side}`) }),
      () => writer.write(deleteToken, { id: names.id('tk', 3), audit: names.audit(`delete-${side}`) }),
    ]);
    await writer.race([
      () => writer.write(recordUses, { uses: [1, 2].map((index) => ({ tokenId: names.id('tk', index), atMs: atMs + side })) }),
      () => writer.write(recordRefusal, { audit: names.audit(`refusal-${side}`) }),
      () => writer.write(revokeSecret, { revoked: { digest: names.id('digest', 'revoked'), tokenId: names.id('tk', 1), atMs } }),
      () => writer.write(addPersons, { persons: [{ name: names.id('person', 0), principalId: names.id('principal', side) }], atMs }),
    ]);
    const did = (outcome: typeof inserted) => (outcome === undefined ? 0 : count([outcome], Boolean));
    return { inserted: did(inserted), rotated: did(rotated), replaced: did(replaced), deleted: did(deleted) };
  },
  async check(look, { round }, [first, second]) {
    const [audits] = await look(
      `select count(*) as count from audit where target = ${quote(round)} and id like 'au_%-%' and id not like 'au_${round}-_'`,
    );
    const [uses] = await look(`select count(*) as count from token_use where token_id like 'tk_${round}-%'`);
    const [revoked] = await look(`select count(*) as count from revoked_secret where digest = ${quote(namesOf(round).id('digest', 'revoked'))}`);
    const [persons] = await look(`select count(*) as count from person where name = ${quote(namesOf(round).id('person', 0))}`);
    return [
      ...differs('records of one revoked secret', revoked?.['count'], 1),
      ...differs('rows of one person', persons?.['count'], 1),
      ...differs('tokens added under one id', first.inserted + second.inserted, 1),
      ...differs('rotations of one secret', first.rotated + second.rotated, 1),
      ...differs('replacements of one secret', first.replaced + second.replaced, 1),
      ...differs('deletions of one token', first.deleted + second.deleted, 1),
      ...differs('audit rows of what was done', audits?.['count'], 4 + 2),
      ...differs('uses', uses?.['count'], 2),
    ];
  },
};

/** Rows of the configuration, the inbox, the clock and the events. */
const settings: Driver<Round, { readonly read: number }> = {
  name: 'settings',
  async prepare(db, names) {
    await db.write(saveAgent, { id: names.id('agent', 1), suspended: 1, atMs, audit: names.audit('agent') });
    for (let index = 0; index < 5; index += 1) await db.write(escalate, { ...messageOf(names, `read-${index}`), principalId: names.round });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const server = {
      name: names.id('mcp', 0),
      transport: 'http',
      url: 'http://127.0.0.1',
      headersSealed: '',
      agentsJson: null,
      enabled: side,
      createdAtMs: atMs,
    };
    await writer.race([
      () => writer.write(saveAgent, { id: names.id('agent', 0), suspended: side, atMs, audit: names.audit(`save-${side}`) }),
      () => writer.write(clearAgentConfig, { id: names.id('agent', 0) }),
      () => writer.write(deleteAgent, { id: names.id('agent', 1) }),
      () => writer.write(saveMcpServer, { row: server, audit: names.audit(`mcp-${side}`) }),
      () => writer.write(enableMcpServer, { name: server.name, enabled: 1, audit: names.audit(`enable-${side}`) }),
      () => writer.write(deleteMcpServer, { name: names.id('mcp', 'none'), audit: names.audit(`drop-${side}`) }),
      () => writer.write(saveBrowserProfile, { agentId: names.id('agent', 0), sealed: String(side), savedAtMs: atMs }),
      () => writer.write(deleteBrowserProfile, { agentId: names.id('agent', 1) }),
      () => writer.write(writeAudit, names.audit(`written-${side}`)),
      () => writer.write(keepKnownTime, { atMs: atMs + side, doubtedMs: 0 }),
      ...[0, 1, 2].map((index) => () => {
        const id = Number(BigInt.asUintN(40, BigInt(`0x${Buffer.from(`${round}${side}${index}`).toString('hex')}`)));
        const row = { firstId: id, lastId: id, atMs, count: 1, chars: 2, totalCount: 1, totalChars: 2, ended: false, heads: '[]', bodies: '' };
        return writer.telemetry(appendBatch, { row, keep: { sinceMs: 0, count: 1_000_000, chars: 1_000_000_000 } });
      }),
    ]);
    const read = await writer.write(markInboxRead, { principalId: names.round, agentIds: [agentId], ids: null, atMs });
    return { read: valueOf(read) ?? 0 };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const [servers] = await look(`select count(*) as count from mcp_server where name = ${quote(names.id('mcp', 0))}`);
    const stateOf = (index: number) => look(`select count(*) as count from agent where id = ${quote(names.id('agent', index))}`);
    const [[agents], [deleted]] = [await stateOf(0), await stateOf(1)];
    const [profiles] = await look(`select count(*) as count from browser_profile where agent_id = ${quote(names.id('agent', 0))}`);
    const [clock] = await look('select count(*) as count from age_clock');
    return [
      ...differs('states of one agent', agents?.['count'], 1),
      ...differs('states of a deleted agent', deleted?.['count'], 0),
      ...differs('messages that became read', first.read + second.read, 5),
      ...differs('servers of one name', servers?.['count'], 1),
      ...differs('browser profiles of one agent', profiles?.['count'], 1),
      ...differs('rows of the clock', clock?.['count'], 1),
    ];
  },
};

export const accessDrivers = [driver(approvals), driver(tokens), driver(settings)];
