import type { Live } from '../../../../kernel/config/live.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { GatedCall } from '../../../../runtime/tool-gate.ts';
import type { TurnInput } from '../../../../runtime/turn.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { ApprovalsConfig } from '../config.ts';
import type { ApprovalChat, NewRequest, SuspendedTurn } from '../store.ts';
import { digestOf, hideIn } from './exact-call.ts';

export interface RequestDeps {
  readonly clock: Clock;
  readonly config: Live<ApprovalsConfig>;
  /** Removes the live secrets of the installation. */
  readonly hideSecrets: (text: string) => string;
}

/** Why a person is asked. */
export interface AskReason {
  readonly reason: string;
  readonly tainted: boolean;
}

const maxActionCharacters = 200;

/** Builds the request for exactly this call; `files` is the digest of the files that it names, `bytes` the size of its arguments. */
export function requestOf(
  { clock, config, hideSecrets }: RequestDeps,
  { tool, args, turn }: GatedCall,
  { reason, tainted, files, bytes }: AskReason & { readonly files: string; readonly bytes: number },
): NewRequest {
  const { agentId, conversationRef, sessionKey, workspaceDir, origin, traceId } = turn;
  // A decision for a suspended turn is for that turn alone.
  const turnId = turn.ledger === undefined ? undefined : turn.turnId;
  const exact = { agentId, conversationRef, tool: tool.name, fingerprint: tool.fingerprint ?? '', args, workspaceDir, turnId };
  const suspended = suspendedTurnOf(turn, () => digestOf({ ...exact, files: '' }));
  // A temporarily wrong clock must not expire requests made under it, or before.
  const atMs = clock.ageNow();
  const timeoutMs = suspended === undefined ? config.current.timeoutMs : config.current.unattendedTimeoutMs;
  return {
    id: newId('ap'),
    digest: digestOf({ ...exact, files }),
    conversationRef,
    sessionKey,
    agentId,
    origin,
    traceId,
    tool: tool.name,
    action: oneLine(hideSecrets(tool.describe?.(args) ?? tool.name)),
    reason: oneLine(hideSecrets(reason)),
    trustLevel: tainted ? 'tainted' : 'clean',
    paramsJson: JSON.stringify(hideIn(args, hideSecrets)),
    paramsBytes: bytes,
    createdAtMs: atMs,
    timeoutMs,
    expiresAtMs: atMs + timeoutMs,
    turnJson: suspended === undefined ? null : JSON.stringify(suspended),
    chatJson: suspended === undefined ? null : chatJsonOf(turn),
  };
}

/** Returns the chat of a turn: for a job that delivers to none, the one that it was added in. */
function chatJsonOf({ call }: TurnInput): string | null {
  const { endpoint, author } = call.agentCaller?.turn ?? {};
  const chat: ApprovalChat | undefined = endpoint ?? author?.to;
  return chat === undefined ? null : JSON.stringify(chat);
}

/** Identifies the message that announces a request. */
export const opKeyOf = (requestId: string) => `approval:${requestId}`;

/** Builds the message that announces the request of a suspended turn. */
export function messageOf({ id, agentId, conversationRef, action, reason, createdAtMs, expiresAtMs }: NewRequest, turn: TurnInput): InboxMessage {
  const until = `${new Date(expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return {
    id: newId('in'),
    opKey: opKeyOf(id),
    digest: id,
    source: 'autonomy',
    agentId,
    conversationRef,
    principalId: turn.principalId,
    level: 'alert',
    text: `Agent ${agentId} waits for an approval (${turn.origin}): ${action}\n\nReason: ${reason}. Decide on the page Approvals, or with \`gatehouse approvals approve ${id}\` or \`deny ${id}\`. Without a decision by ${until} the call is denied, and the work continues without it.`,
    atMs: createdAtMs,
  };
}

/** Describes the turn of durable work; undefined for turns that live as long as their request. */
function suspendedTurnOf({ ledger, turnId, principalId, call }: TurnInput, callDigest: () => string): SuspendedTurn | undefined {
  if (ledger === undefined) return undefined;
  const { rootRunId = `root-turn-${turnId}`, run } = call.agentCaller?.turn ?? {};
  return {
    workId: ledger.workId,
    turnId,
    rootRunId,
    ...(run !== undefined && { runId: run.runId, leaseId: run.leaseId }),
    tokenId: call.identity.tokenId,
    principalId,
    startedAtMs: ledger.startedAtMs,
    callDigest: callDigest(),
  };
}

/** People decide by this text: it must not be able to imitate something else. */
function oneLine(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return line.length > maxActionCharacters ? `${line.slice(0, maxActionCharacters - 1).toWellFormed()}…` : line;
}
