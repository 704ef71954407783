import { hash } from 'node:crypto';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { MessageOperation, Target } from './api.ts';

/** Returns a digest of length-delimited fields, so that none can spill into the next. */
function digestOf(...fields: readonly string[]): string {
  return hash('sha256', fields.map((field) => `${Buffer.byteLength(field)}:${field}`).join(''), 'base64url');
}

/** What a caller wants to be done once. */
export interface Wanted {
  readonly method: string;
  /** The caller's name for it; of an agent, the call of its tool. */
  readonly operationId: string;
  readonly target: Target;
  readonly content: Readonly<Record<string, unknown>>;
}

/** Returns the identity of an operation: of an agent within its root run, of a token within its principal. */
export function operationOf(
  { method, operationId, target, content }: Wanted,
  { agentCaller, identity }: CallContext,
  { bootId, atMs }: { readonly bootId: string; readonly atMs: number },
): Omit<MessageOperation, 'state'> {
  const rootRunId = agentCaller?.turn?.rootRunId ?? null;
  const owner = agentCaller === undefined ? ['token', identity.principalId] : ['run', rootRunId ?? '', agentCaller.conversationRef];
  return {
    id: `mo_${digestOf(...owner, method, operationId)}`,
    method,
    digest: digestOf(JSON.stringify([target.to, content])),
    rootRunId,
    agentId: target.agentId,
    bootId,
    atMs,
  };
}
