import { ago, dateTime } from '../../data/format.ts';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge } from '../../ui/parts.tsx';
import { Waiting } from '../../ui/waiting.tsx';
import { runTones, type Run } from './labels.ts';

/** How the newest run of a job went, and why it failed. */
export function LastRun({ run: { status, startedAtMs, workKind, rootRunId, errorKind, reason, cause, waiting } }: { readonly run: Run }) {
  const why = cause ?? reason ?? errorKind;
  return (
    <>
      <p className="facts-line">
        <span>Last run</span>
        <Badge tone={runTones[status]}>{status}</Badge>
        <Waiting waiting={waiting} />
        <span title={dateTime(startedAtMs)}>{ago(startedAtMs)}</span>
        {workKind === 'agent_turn' && <TraceLink reference={rootRunId} />}
      </p>
      {status === 'failed' && why !== undefined && (
        <p className="bad-text" dir="auto">
          {why}
        </p>
      )}
    </>
  );
}
