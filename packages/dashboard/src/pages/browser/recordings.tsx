import { t, tx } from '../../language.ts';
import type { BrowserRecordedStep, BrowserRecording, Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes, clockTime, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Empty, Failure, IconButton, Skeleton } from '../../ui/parts.tsx';

/** Lists what was recorded of the browser of an agent, and shows the steps of one recording. */
export function Recordings({ agentId }: { readonly agentId: string }) {
  const [open, setOpen] = useState<string>();
  return open === undefined ? (
    <RecordingList agentId={agentId} onOpen={setOpen} />
  ) : (
    <StepList agentId={agentId} recordingId={open} onBack={() => setOpen(undefined)} />
  );
}

function RecordingList({ agentId, onOpen }: { readonly agentId: string; readonly onOpen: (recordingId: string) => void }) {
  const { admin, client } = useSession();
  const [limit, setLimit] = useState(20);
  const [doomed, setDoomed] = useState<BrowserRecording>();
  const found = useLoad(['browser.recordings', agentId, limit], (signal) => client.call('browser.recordings.list', { agentId, limit }, { signal }), {
    keepsPrevious: ([, before]) => before === agentId,
  });
  const { data } = found;
  return (
    <>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={3} />}
      {data?.recordings.length === 0 && (
        <Empty title={t('No recordings')}>
          <p>{t('The next step in this browser begins one, unless recording is switched off in the settings.')}</p>
        </Empty>
      )}
      {data !== undefined && data.recordings.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Recordings, table')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Started')}</th>
                <th scope="col">{t('Last address')}</th>
                <th scope="col" data-align="right">
                  {t('Steps')}
                </th>
                <th scope="col" data-align="right">
                  {t('Size')}
                </th>
                <th scope="col">
                  <span className="visually-hidden">{t('Actions')}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.recordings.map((recording) => (
                <tr key={recording.recordingId}>
                  <th scope="row">
                    <button type="button" className="link-button" onClick={() => onOpen(recording.recordingId)}>
                      {dateTime(recording.startedAt)}
                    </button>{' '}
                    {recording.running && <Badge tone="accent">{t('Running')}</Badge>}
                  </th>
                  <td className="mono browser-address">{recording.url ?? ''}</td>
                  <td data-align="right">
                    {recording.steps}
                    {recording.failed > 0 && t(', {failed} failed', { failed: recording.failed })}
                  </td>
                  <td data-align="right">{bytes(recording.bytes)}</td>
                  <td>
                    {admin && (
                      <IconButton
                        icon="trash"
                        label={t('Delete the recording of {startedAt}', { startedAt: dateTime(recording.startedAt) })}
                        onClick={() => setDoomed(recording)}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.more === true && limit < 100 && (
        <Button small onClick={() => setLimit(100)}>
          {t('Show more')}
        </Button>
      )}
      {doomed !== undefined && (
        <Confirm
          title={t('Delete recording')}
          action={t('Delete')}
          run={async () => {
            await client.call('browser.recordings.delete', { agentId, recordingId: doomed.recordingId });
            found.reload();
          }}
          onClose={() => setDoomed(undefined)}
        >
          <p>
            {tx("Deletes the recording of {startedAt} with {steps}. This can't be undone.", {
              startedAt: dateTime(doomed.startedAt),
              steps: plural(doomed.steps, 'step'),
            })}
          </p>
        </Confirm>
      )}
    </>
  );
}

type Gap = Result<'browser.recordings.get'>['gaps'][number];

/** Returns steps and gaps in the order of their numbers. */
function withGaps(steps: readonly BrowserRecordedStep[], gaps: readonly Gap[]): readonly (BrowserRecordedStep | Gap)[] {
  const numberOf = (one: BrowserRecordedStep | Gap): number => ('missing' in one ? one.from : one.step);
  return [...steps, ...gaps].toSorted((one, other) => numberOf(one) - numberOf(other));
}

const actors: Readonly<Record<BrowserRecordedStep['by'], string>> = { agent: t('Agent'), caller: t('Caller'), person: t('Person') };

function StepList({ agentId, recordingId, onBack }: { readonly agentId: string; readonly recordingId: string; readonly onBack: () => void }) {
  const { client } = useSession();
  const [chosen, setChosen] = useState<number>();
  const found = useLoad(['browser.recording', agentId, recordingId], (signal) =>
    client.call('browser.recordings.get', { agentId, recordingId }, { signal }),
  );
  const steps = found.data?.steps;
  // Steps without a picture leave the page as it was.
  const shown = steps?.findLast(({ step, picture }) => picture && step <= (chosen ?? Infinity));
  return (
    <>
      <p className="facts-line">
        <Button small icon="previous" onClick={onBack}>
          {t('All recordings')}
        </Button>
        <Button small icon="retry" onClick={found.reload}>
          {t('Reload')}
        </Button>
      </p>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {steps === undefined && found.loading && <Skeleton lines={4} />}
      {steps !== undefined && (
        <div className="browser-recording">
          {shown !== undefined && <StepPicture agentId={agentId} recordingId={recordingId} shown={shown} />}
          <ol className="browser-steps" aria-label={t('Steps')}>
            {withGaps(steps, found.data?.gaps ?? []).map((one) =>
              'missing' in one ? (
                <li key={`gap ${one.from}`} className="browser-error">
                  {one.reason === 'disk_full'
                    ? tx('{steps} could not be stored: the disk was full', { steps: plural(one.missing, 'step') })
                    : tx('{steps} could not be stored', { steps: plural(one.missing, 'step') })}
                </li>
              ) : (
                <li key={one.step} aria-current={one.step === chosen ? 'step' : undefined}>
                  <button type="button" className="link-button" onClick={() => setChosen(one.step)}>
                    {one.step}. {one.action}
                  </button>{' '}
                  {!one.ok && <Badge tone="bad">{t('Failed')}</Badge>} {one.detail}
                  <div className="hint">
                    {tx('{at}, {took} ms, {actors} {span}', {
                      at: clockTime(one.at),
                      took: one.tookMs,
                      actors: actors[one.by],
                      span: <span className="mono">{one.principalId}</span>,
                    })}
                    {one.by === 'agent' && (
                      <>
                        {' '}
                        <TraceLink reference={one.traceId} />
                      </>
                    )}
                  </div>
                  {one.url !== undefined && <div className="mono browser-address">{one.url}</div>}
                  {one.error !== undefined && <div className="browser-error">{one.error}</div>}
                </li>
              ),
            )}
          </ol>
        </div>
      )}
    </>
  );
}

function StepPicture(props: { readonly agentId: string; readonly recordingId: string; readonly shown: BrowserRecordedStep }) {
  const { agentId, recordingId, shown } = props;
  const { client } = useSession();
  const { step } = shown;
  const found = useLoad(
    ['browser.recordings.picture', agentId, recordingId, step],
    (signal) => client.call('browser.recordings.picture', { agentId, recordingId, step }, { signal }),
    { keepsPrevious: ([, , before]) => before === recordingId },
  );
  if (found.error !== undefined) return <Failure error={found.error} onRetry={found.reload} />;
  if (found.data === undefined) return <Skeleton lines={4} />;
  return (
    <img
      className="browser-picture"
      src={`data:image/jpeg;base64,${found.data.jpeg}`}
      alt={t('The page {title} after step {step}', { title: shown.title ?? shown.url ?? '', step })}
    />
  );
}
