import { t, tx } from '../../language.ts';
import { type ReactNode, Suspense, useEffect, useState } from 'react';
import type { ApprovalRequest } from '../../data/approvals.ts';
import type { ToolActivity } from '../../data/tool-activity.ts';
import { Icon, type IconName } from '../../ui/icon.tsx';
import { PageLink } from '../../ui/link.tsx';
import { plural } from '../../data/format.ts';
import { ApprovalCard } from '../../lazy-pages.ts';

const outcomes: Readonly<Record<string, { readonly text: string; readonly icon: IconName; readonly tone: string }>> = {
  ok: { text: t('done'), icon: 'check', tone: 'good-text' },
  error: { text: t('failed'), icon: 'warning', tone: 'bad-text' },
  denied: { text: t('denied'), icon: 'close', tone: 'bad-text' },
  background: { text: t('continues in the background'), icon: 'play', tone: '' },
};
/** Finished calls are listed without folding up to this number. */
const maxOpen = 4;

/** The part of a call that one line shows. */
type ShownCall = Pick<ToolActivity, 'toolName' | 'outcome' | 'durationMs'> & {
  readonly description: string | undefined;
  /** Absent for a call of which only the result is known. */
  readonly startedAtMs: number | undefined;
  readonly result?: string | undefined;
};

export function isOpenCall({ outcome, result, startedAtMs }: ShownCall): boolean {
  return outcome === undefined && result === undefined && startedAtMs !== undefined;
}

/** Lists the tool calls of a turn live. */
export function ToolCalls({ calls }: { readonly calls: readonly ToolActivity[] }) {
  if (calls.length === 0) return null;
  return (
    <CallList running={calls.filter(isOpenCall).length} count={calls.length}>
      {calls.map((call) => (
        <li className="tool-call" key={`${call.turnId} ${call.callId}`}>
          <CallLine call={call} />
        </li>
      ))}
    </CallList>
  );
}

/** A list of calls, folded when they are many and all finished. */
export function CallList({ running, count, children }: { readonly running: number; readonly count: number; readonly children: ReactNode }) {
  const list = (
    <ul className="tool-calls" aria-label={t('Tools in use')}>
      {children}
    </ul>
  );
  if (running > 0 || count <= maxOpen) return list;
  return (
    <details className="tool-calls-folded">
      <summary className="hint">{plural(count, 'tool call')}</summary>
      {list}
    </details>
  );
}

export function CallLine({ call }: { readonly call: ShownCall }) {
  const { toolName, description = toolName, startedAtMs, outcome, durationMs } = call;
  const known = outcome === undefined ? undefined : (outcomes[outcome] ?? { text: outcome, icon: 'info' as const, tone: '' });
  const isOpen = isOpenCall(call);
  return (
    <>
      <span className={isOpen ? 'tool-running' : (known?.tone ?? 'good-text')}>
        <Icon name={isOpen ? 'pulse' : (known?.icon ?? 'check')} />
      </span>
      <span className="mono">{toolName}</span>
      {description !== toolName && (
        <span className="tool-text" dir="auto">
          {description}
        </span>
      )}
      <span className="hint">
        {isOpen ? t('running') : known?.text}{' '}
        {durationMs !== undefined ? seconds(durationMs) : isOpen && startedAtMs !== undefined && <Elapsed sinceMs={startedAtMs} />}
      </span>
    </>
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
  return whole < 1 ? null : t('for {whole} s', { whole });
}

function seconds(ms: number): string {
  return ms < 1000 ? t('in {ms} ms', { ms: Math.round(ms) }) : t('in {value} s', { value: (ms / 1000).toFixed(1) });
}

/** Pending approvals of this conversation, with buttons to decide. */
export function WaitingCalls({ requests }: { readonly requests: readonly ApprovalRequest[] }) {
  if (requests.length === 0) return null;
  return (
    <section className="approvals" aria-label={t('Waiting for your approval')}>
      <p className="hint">{tx('The agent is waiting for you. {link}', { link: <PageLink to="/approvals">{t('All pending calls')}</PageLink> })}</p>
      <Suspense fallback={null}>
        {requests.map((request) => (
          <ApprovalCard key={request.requestId} request={request} inChat />
        ))}
      </Suspense>
    </section>
  );
}
