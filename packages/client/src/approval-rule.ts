import type { EventPayload, Result } from '@gatehouse/contract';
import type { Client } from './client.ts';

/** The call that a person is asked about. */
export type AskedCall = Pick<
  EventPayload<'approval:requested'> & Result<'admin.approval.pending'>['requests'][number],
  'toolName' | 'params' | 'agentId' | 'origin' | 'trustLevel'
>;

/** An entry of `approvals.rules` that allows one call. */
export interface AllowRule {
  readonly tools: readonly [string];
  readonly agents: readonly [string];
  readonly origins: readonly [string];
  readonly match?: Readonly<Record<string, string>>;
  readonly exact: true;
  readonly action: 'auto';
}

const maxPattern = 1024;
/** Rules never allow such paths, whatever their pattern (see `approvals.rules`). */
const leadsElsewhere = /(?:^|[/\\"])\.{1,2}(?:[/\\"]|$)/;

/**
 * Returns the narrowest rule that allows this call again: the same tool, agent and origin, every argument as it is, and no other.
 * Returns the reason as a text when no rule can say that.
 */
export function ruleFor({ toolName, params, agentId, origin, trustLevel }: AskedCall): AllowRule | string {
  if (trustLevel === 'tainted') return 'after reading external content, a call is always asked about';
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return 'the arguments of the call are not known';
  const match: Record<string, string> = {};
  for (const [name, value] of Object.entries(params)) {
    const text: string = typeof value === 'string' ? value : JSON.stringify(value);
    if (text.includes('[REDACTED]')) return `${name} contains a secret`;
    // A pattern has no spelling for these characters themselves: the rule would allow more than this call.
    if (/[*?]/.test(text)) return `${name} contains * or ?, wildcards in a rule`;
    if (leadsElsewhere.test(text)) return `${name} contains . or .. as a part of a path`;
    if (text.length > maxPattern) return `${name} is longer than ${maxPattern} characters`;
    match[name] = text;
  }
  return {
    tools: [toolName],
    agents: [agentId],
    origins: [origin],
    ...(Object.keys(match).length > 0 && { match }),
    exact: true,
    action: 'auto',
  };
}

/** Writes a rule in front of the others: the first one that matches a call decides. Fails with `conflict` after a change by someone else. */
export async function addRule(client: Pick<Client, 'call'>, rule: AllowRule): Promise<void> {
  const { written, digest } = await client.call('config.read', { section: 'approvals', written: true });
  const rules = typeof written === 'object' && written !== null && 'rules' in written && Array.isArray(written.rules) ? written.rules : [];
  await client.call('config.set', { path: 'approvals.rules', value: [rule, ...rules], ifDigest: digest, confirm: true });
}
