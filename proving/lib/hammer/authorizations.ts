import {
  alertAboutServer,
  deleteAuthorization,
  loseAuthorization,
  openFlow,
  renewAuthorization,
  saveAuthorization,
  takeFlow,
} from '../../../packages/server/src/features/agents/mcp/authorization/authorization-store.ts';
import { deliverToInbox } from '../../../packages/server/src/transactions/deliver-message.ts';
import { toCall } from '../../../packages/server/src/kernel/db/operation.ts';
import { agentId, atMs, differs, driver, type Driver, type Names, namesOf, principalId, quote, valueOf } from './driver.ts';

interface Round {
  readonly round: string;
}

interface Done {
  readonly taken: number;
  readonly renewed: number;
  readonly lost: number;
  readonly alerted: number;
}

const maxPerServer = 5;

const rowOf = (names: Names, index: string) => ({ server: names.id('mcp', index), version: 'first', sealed: '', principalId, authorizedAtMs: atMs });
const flowOf = (names: Names, index: string, server: string) => ({
  stateDigest: names.id('flow', index),
  server: names.id('mcp', server),
  sealed: '',
  principalId,
  tokenId: 'root',
  createdAtMs: atMs,
});
const alertOf = (names: Names, key: string, side: number) =>
  toCall(deliverToInbox, {
    id: names.id('in', `${key}-${side}`),
    opKey: names.id('op', key),
    digest: key,
    source: 'mcp',
    agentId,
    conversationRef: null,
    principalId: names.round,
    level: 'alert',
    text: key,
    atMs,
  });

/** Authorizations that both complete, renew and lose: each happens once, and there are never too many flows. */
const authorizations: Driver<Round, Done> = {
  name: 'MCP authorizations',
  async prepare(db, names) {
    for (const index of ['renewed', 'lost', 'gone']) await db.write(saveAuthorization, { row: rowOf(names, index), audit: names.audit(index) });
    const alive = { fromMs: atMs - 1, toMs: atMs + 1 };
    await db.write(openFlow, { row: flowOf(names, 'taken', 'taken'), alive, maxPerServer, audit: names.audit('open') });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const alive = { fromMs: atMs - 1, toMs: atMs + 1 };
    const [taken, renewed, lost, alerted] = await writer.all<unknown>([
      async () => valueOf(await writer.write(takeFlow, { stateDigest: names.id('flow', 'taken') })),
      async () =>
        valueOf(
          await writer.write(renewAuthorization, {
            server: names.id('mcp', 'renewed'),
            expected: 'first',
            version: `next-${side}`,
            sealed: `${side}`,
          }),
        ),
      async () =>
        valueOf(await writer.write(loseAuthorization, { server: names.id('mcp', 'lost'), version: 'first', alert: alertOf(names, 'lost', side) })),
      async () => valueOf(await writer.write(alertAboutServer, { call: alertOf(names, 'scope', side) })),
      () => writer.write(saveAuthorization, { row: { ...rowOf(names, 'saved'), version: `${side}` }, audit: names.audit(`save-${side}`) }),
      () => writer.write(deleteAuthorization, { server: names.id('mcp', 'gone'), audit: names.audit(`delete-${side}`) }),
      ...['a', 'b', 'c', 'd'].map(
        (index) => () =>
          writer.write(openFlow, {
            row: flowOf(names, `${index}-${side}`, 'many'),
            alive,
            maxPerServer,
            audit: names.audit(`open-${index}-${side}`),
          }),
      ),
    ]);
    return {
      taken: taken === undefined ? 0 : 1,
      renewed: renewed === true ? 1 : 0,
      lost: lost === true ? 1 : 0,
      alerted: alerted === 'accepted' ? 1 : 0,
    };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const of = (table: string, index: string) => `from ${table} where server = ${quote(names.id('mcp', index))}`;
    const [flows] = await look(`select count(*) as count ${of('mcp_authorization_flow', 'many')}`);
    const [saved] = await look(`select count(*) as count ${of('mcp_authorization', 'saved')}`);
    const [gone] = await look(`select count(*) as count ${of('mcp_authorization', 'gone')}`);
    const [lost] = await look(`select count(*) as count ${of('mcp_authorization', 'lost')}`);
    const [alerts] = await look(`select count(*) as count from inbox_message where principal_id = ${quote(round)}`);
    return [
      ...differs('states that were accepted', first.taken + second.taken, 1),
      ...differs('renewals of one version', first.renewed + second.renewed, 1),
      ...differs('losses of one authorization', first.lost + second.lost, 1),
      ...differs('alerts under one key', first.alerted + second.alerted, 1),
      ...differs('alerts', alerts?.['count'], 2),
      ...differs('flows of one server', flows?.['count'], maxPerServer),
      ...differs('saved authorizations', saved?.['count'], 1),
      ...differs('deleted and lost authorizations', Number(gone?.['count']) + Number(lost?.['count']), 0),
    ];
  },
};

export const authorizationDrivers = [driver(authorizations)];
