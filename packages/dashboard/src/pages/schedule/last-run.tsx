import { TraceLink } from '../../ui/object-link.tsx';
import { Badge } from '../../ui/parts.tsx';
import { Waiting, WaitingReason } from '../../ui/waiting.tsx';
import { When } from '../../ui/when.tsx';
import { runTones, type Run } from './labels.ts';

/** How the newest run of a job went, and why it failed. */
export function LastRun({ run: { status, startedAtMs, workKind, rootRunId, errorKind, reason, cause, waiting } }: { readonly run: Run }) {
  const why = cause ?? reason ?? errorKind;
  return (
    <>
      <p className="facts-line">
        <Badge tone={runTones[status]}>{status}</Badge>
        <Waiting waiting={waiting} />
        <When atMs={startedAtMs} />
        {workKind === 'agent_turn' && <TraceLink reference={rootRunId} />}
      </p>
      <WaitingReason waiting={waiting} />
      {status === 'failed' && why !== undefined && (
        <p className="bad-text" dir="auto">
          {why}
        </p>
      )}
    </>
  );
}
