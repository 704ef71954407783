import { Suspense, useEffect, useState } from 'react';
import type { ApprovalRequest } from '../../data/approvals.ts';
import type { ToolActivity } from '../../data/tool-activity.ts';
import { Icon, type IconName } from '../../ui/icon.tsx';
import { PageLink } from '../../ui/link.tsx';
import { plural } from '../../data/format.ts';
import { ApprovalCard } from '../../lazy-pages.ts';

const outcomes: Readonly<Record<string, { readonly text: string; readonly icon: IconName; readonly tone: string }>> = {
  ok: { text: 'done', icon: 'check', tone: 'good-text' },
  error: { text: 'failed', icon: 'warning', tone: 'bad-text' },
  denied: { text: 'denied', icon: 'close', tone: 'bad-text' },
  background: { text: 'continues in the background', icon: 'play', tone: '' },
};
/** Finished calls are listed without folding up to this number. */
const maxOpen = 4;

/** Lists the tool calls of a turn live; folded when many and all finished. */
export function ToolCalls({ calls }: { readonly calls: readonly ToolActivity[] }) {
  const running = calls.filter(({ outcome }) => outcome === undefined).length;
  if (calls.length === 0) return null;
  const list = (
    <ul className="tool-calls" aria-label="Tools in use">
      {calls.map((call) => (
        <ToolCall key={`${call.turnId} ${call.callId}`} call={call} />
      ))}
    </ul>
  );
  if (running > 0 || calls.length <= maxOpen) return list;
  return (
    <details className="tool-calls-folded">
      <summary className="hint">{plural(calls.length, 'tool call')}</summary>
      {list}
    </details>
  );
}

function ToolCall({ call: { toolName, description, startedAtMs, outcome, durationMs } }: { readonly call: ToolActivity }) {
  const end = outcome === undefined ? undefined : (outcomes[outcome] ?? { text: outcome, icon: 'info' as const, tone: '' });
  return (
    <li className="tool-call">
      <span className={end?.tone ?? 'tool-running'}>
        <Icon name={end?.icon ?? 'pulse'} />
      </span>
      <span className="mono">{toolName}</span>
      {description !== toolName && (
        <span className="tool-text" dir="auto">
          {description}
        </span>
      )}
      <span className="hint">
        {end === undefined ? 'running' : end.text} {durationMs === undefined ? <Elapsed sinceMs={startedAtMs} /> : seconds(durationMs)}
      </span>
    </li>
  );
}

function Elapsed({ sinceMs }: { readonly sinceMs: number }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const whole = Math.floor(Math.max(0, now - sinceMs) / 1000);
  // Hides the clock for the first second.
  return whole < 1 ? null : `for ${whole} s`;
}

function seconds(ms: number): string {
  return ms < 1000 ? `in ${Math.round(ms)} ms` : `in ${(ms / 1000).toFixed(1)} s`;
}

/** Pending approvals of this conversation, with buttons to decide. */
export function WaitingCalls({ requests }: { readonly requests: readonly ApprovalRequest[] }) {
  if (requests.length === 0) return null;
  return (
    <section className="approvals" aria-label="Waiting for your approval">
      <p className="hint">
        The agent is waiting for you. <PageLink to="/approvals">All pending calls</PageLink>
      </p>
      <Suspense fallback={null}>
        {requests.map((request) => (
          <ApprovalCard key={request.requestId} request={request} />
        ))}
      </Suspense>
    </section>
  );
}
