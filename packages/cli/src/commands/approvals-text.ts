import type { Result } from '@gatehouse/contract';
import { plainText } from '../render/plain.ts';
import { renderBytes, renderColumns, renderDuration } from '../render/table.ts';

export type ApprovalRequest = Result<'admin.approval.pending'>['requests'][number];

/** Formats each call completely, because the user must see everything to decide. */
export function approvalsText(requests: readonly ApprovalRequest[], total: number, now: number): string {
  if (requests.length === 0) return 'No pending approvals.';
  const texts = requests.map((request) => approvalText(request, now));
  return [...texts, ...(total > requests.length ? [`Showing ${requests.length} of ${total}.`] : [])].join('\n\n');
}

function approvalText(request: ApprovalRequest, now: number): string {
  const { requestId, toolName, action, params, paramsBytes, digest, reason, agentId, sessionKey, origin, trustLevel, expiresAt } = request;
  const left = expiresAt - now;
  const facts = renderColumns([
    ['id', requestId],
    ['call', action === toolName ? toolName : `${toolName}: ${action}`],
    ['agent', `${agentId}, ${sessionKey}, from ${origin}`],
    ['because', reason],
    ['trust', trustLevel === 'tainted' ? 'tainted: the model has read external content' : trustLevel],
    ['ends', left <= 0 ? 'expired' : `in ${renderDuration(left)}`],
    ['digest', digest],
    ['arguments', renderBytes(paramsBytes)],
  ]);
  const indented = revealedJson(params)
    .split('\n')
    .map((line) => `  ${line}`);
  return [facts, ...indented].join('\n');
}

/** Formats multi-line JSON and escapes every invisible or direction-changing character. */
export function revealedJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? 'null';
  return text.replaceAll(/[^\n\P{C}]|\p{Zl}|\p{Zp}|(?!\p{C})\p{Default_Ignorable_Code_Point}/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

export function decisionText({ requestId, approved, approvedBy }: Result<'admin.approval.resolve'>): string {
  return `${approved ? 'Approved' : 'Denied'} ${requestId} as ${plainText(approvedBy)}.`;
}
