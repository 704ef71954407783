import { t } from '../language.ts';
import { type Client, createClient, GatehouseError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { RequestQuota } from './request-quota.ts';

/** Access of a token, as found at login. */
export interface Connection {
  readonly client: Client;
  readonly quota: RequestQuota;
  readonly admin: boolean;
  /** Ids of the agents that the token may use. */
  readonly agentIds: readonly string[];
  readonly defaultAgentId: string;
  /** Present for admin tokens only. */
  readonly status: Result<'gateway.status'> | undefined;
  /** The newest changes of providers in config.yaml; empty for other tokens. */
  readonly providerChanges: Result<'config.history'>['entries'];
}

/** Maximum number of changes that are loaded at login. */
export const mostChanges = 20;

/**
 * Tries a token with one request. The gateway is always the one that served this page; no other address is ever used.
 * Throws an error that can be shown to the user when the token is refused.
 */
export async function connect(token: string): Promise<Connection> {
  const quota = new RequestQuota();
  const client = createClient({ url: location.origin, token, fetch: quota.fetch });
  const [status, agents, own, changes] = await client.batch([
    { method: 'gateway.status' },
    { method: 'agents.list' },
    { method: 'session.status' },
    { method: 'config.history', params: { section: 'providers', limit: mostChanges } },
  ]);
  if (!own.ok && own.error.code === 'insufficient_scope')
    throw new GatehouseError({
      code: 'insufficient_scope',
      message: t('This token is valid, but the dashboard needs one with the scope rpc or admin.'),
    });
  const agentIds = agents.ok ? agents.result.agents : await reachableAgents(client);
  return {
    client,
    quota,
    admin: status.ok,
    agentIds,
    defaultAgentId: own.ok ? own.result.agentId : (agentIds[0] ?? 'default'),
    status: status.ok ? status.result : undefined,
    providerChanges: changes.ok ? changes.result.entries : [],
  };
}

/** Returns the agents that the token may use now. */
export async function listAgents({ client, admin }: Pick<Connection, 'client' | 'admin'>): Promise<readonly string[]> {
  return admin ? (await client.call('agents.list')).agents : reachableAgents(client);
}

/** The model list names the agents that a non-admin token may use. */
async function reachableAgents(client: Client): Promise<string[]> {
  const models = await client.models();
  return models.flatMap(({ id }) => (id.startsWith('agent/') ? [id.slice('agent/'.length)] : []));
}
