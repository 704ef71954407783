import { Suspense, useEffect, useState } from 'react';
import type { ApprovalRequest } from '../../data/approvals.ts';
import type { ToolActivity } from '../../data/tool-activity.ts';
import { Icon, type IconName } from '../../ui/icon.tsx';
import { PageLink } from '../../ui/link.tsx';
import { plural } from '../../data/format.ts';
import { ApprovalCard } from '../../later-parts.ts';

const outcomes: Readonly<Record<string, { readonly words: string; readonly icon: IconName; readonly tone: string }>> = {
  ok: { words: 'done', icon: 'check', tone: 'good-text' },
  error: { words: 'failed', icon: 'warning', tone: 'bad-text' },
  denied: { words: 'not allowed', icon: 'close', tone: 'bad-text' },
  background: { words: 'goes on in the background', icon: 'play', tone: '' },
};
/** Calls that are shown one by one when none of them runs any more. */
const maxOpen = 4;

/** The tools that a turn uses, as it does; folded when they are many and all are over. */
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
  const end = outcome === undefined ? undefined : (outcomes[outcome] ?? { words: outcome, icon: 'info' as const, tone: '' });
  return (
    <li className="tool-call">
      <span className={end?.tone ?? 'tool-running'}>
        <Icon name={end?.icon ?? 'pulse'} />
      </span>
      <span className="mono">{toolName}</span>
      {description !== toolName && (
        <span className="tool-words" dir="auto">
          {description}
        </span>
      )}
      <span className="hint">
        {end === undefined ? 'runs' : end.words} {durationMs === undefined ? <Elapsed sinceMs={startedAtMs} /> : seconds(durationMs)}
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
  // What is over in a moment needs no clock.
  return whole < 1 ? null : `for ${whole} s`;
}

function seconds(ms: number): string {
  return ms < 1000 ? `in ${Math.round(ms)} ms` : `in ${(ms / 1000).toFixed(1)} s`;
}

/** Calls of this conversation that wait for somebody, decided on the spot. */
export function WaitingCalls({ requests }: { readonly requests: readonly ApprovalRequest[] }) {
  if (requests.length === 0) return null;
  return (
    <section className="approvals" aria-label="Waits for your approval">
      <p className="hint">
        The agent waits for you. <PageLink to="/approvals">All waiting calls</PageLink>
      </p>
      <Suspense fallback={null}>
        {requests.map((request) => (
          <ApprovalCard key={request.requestId} request={request} />
        ))}
      </Suspense>
    </section>
  );
}
