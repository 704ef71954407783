import { t } from '../../language.ts';
import { type ReactNode, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import type { WaitingItem } from '../../data/waiting.ts';
import { PageLink } from '../../ui/link.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';
import { JobDialog } from '../schedule/job-dialog.tsx';
import { nextRunOf, payloadText } from '../schedule/labels.ts';
import { WaitingCard } from './waiting-card.tsx';

type Of<Kind extends WaitingItem['kind']> = Extract<WaitingItem, { kind: Kind }>;

function Dismiss({ item, name }: { readonly item: WaitingItem; readonly name: string }) {
  const { waiting } = useSession();
  return (
    <Button look="quiet" label={t('Dismiss {name}', { name })} onClick={() => waiting.dismiss(item.key)}>
      {t('Dismiss')}
    </Button>
  );
}

function Cause({ children }: { readonly children: ReactNode }) {
  return (
    <Notice tone="bad">
      <span dir="auto">{children}</span>
    </Notice>
  );
}

/** A job whose last run failed, or that failures of its provider have paused. */
export function JobCard({ item }: { readonly item: Of<'job'> }) {
  const { client, waiting } = useSession();
  const [isEditing, setIsEditing] = useState(false);
  const { busy, error, run } = useAction();
  const { job, sinceMs } = item;
  const { lastRun } = job;
  const isPaused = job.lifecycle.state === 'paused';
  const next = nextRunOf(job);
  const act = (work: () => Promise<unknown>) => (): void => run(() => work().then(waiting.reload));
  return (
    <WaitingCard
      badge={isPaused ? t('Job paused after failures') : lastRun?.status === 'unknown' ? t('Job interrupted') : t('Job failed')}
      tone="bad"
      title={job.name}
      sinceMs={sinceMs}
      facts={
        <>
          <PageLink to={`/schedule/${job.id}`}>{t('All runs')}</PageLink>
          {lastRun?.workKind === 'agent_turn' && <TraceLink reference={lastRun.rootRunId} label={t('Trace of {name}', { name: job.name })} />}
        </>
      }
      actions={
        <>
          <Dismiss item={item} name={job.name} />
          <span className="grow" />
          {job.lifecycle.state !== 'one_shot_terminal' && (
            <Button icon="edit" label={t('Edit {name}', { name: job.name })} onClick={() => setIsEditing(true)}>
              {t('Edit')}
            </Button>
          )}
          {isPaused && (
            <Button
              icon="play"
              disabled={busy}
              label={t('Resume {name}', { name: job.name })}
              onClick={act(() => client.call('cron.update', { jobId: job.id, paused: false }))}
            >
              {t('Resume')}
            </Button>
          )}
          {job.lifecycle.state === 'scheduled' && (
            <Button
              icon="pause"
              disabled={busy}
              label={t('Pause {name}', { name: job.name })}
              onClick={act(() => client.call('cron.update', { jobId: job.id, paused: true }))}
            >
              {t('Pause')}
            </Button>
          )}
          <Button
            look="primary"
            icon="retry"
            disabled={busy}
            label={t('Run again: {name}', { name: job.name })}
            onClick={act(() => client.call('cron.run', { jobName: job.id, agentId: job.agentId }))}
          >
            {t('Run again')}
          </Button>
        </>
      }
    >
      <Cause>{lastRun?.cause ?? lastRun?.reason ?? lastRun?.errorKind ?? t('The outcome is not known.')}</Cause>
      <p className="snippet" dir="auto">
        {payloadText(job.payload)}
      </p>
      {next !== null && (
        <p className="hint">
          <When atMs={next} before={`${t('Runs next')} `} />
        </p>
      )}
      {error !== undefined && <Failure error={error} />}
      {isEditing && (
        <JobDialog
          job={job}
          offersRun
          onClose={() => setIsEditing(false)}
          onDone={() => {
            setIsEditing(false);
            waiting.reload();
          }}
        />
      )}
    </WaitingCard>
  );
}

/** A webhook whose turn failed, or was cut off by a crash. */
export function WebhookCard({ item }: { readonly item: Of<'webhook'> }) {
  const { client, waiting } = useSession();
  const { busy, error, run } = useAction();
  const { deliveryId, mapping, state, message, turnId, cause, errorKind } = item.webhook;
  return (
    <WaitingCard
      badge={state === 'unknown' ? t('Webhook interrupted') : t('Webhook failed')}
      tone="bad"
      title={mapping}
      sinceMs={item.sinceMs}
      facts={
        <>
          <PageLink to={`/webhooks/${deliveryId}`}>{t('Open delivery')}</PageLink>
          {turnId !== null && <TraceLink reference={turnId} label={t('Trace of {mapping}', { mapping })} />}
        </>
      }
      actions={
        <>
          <Dismiss item={item} name={mapping} />
          <span className="grow" />
          <Button
            look="primary"
            icon="retry"
            disabled={busy}
            label={t('Run again: {mapping}', { mapping })}
            onClick={() =>
              run(async () => {
                await client.call('webhooks.replay', { deliveryId });
                // The old delivery stays failed; the new one is listed when it fails too.
                waiting.dismiss(item.key);
              })
            }
          >
            {t('Run again')}
          </Button>
        </>
      }
    >
      <Cause>{cause ?? errorKind ?? t('The gateway stopped while it ran: how far it got is not known.')}</Cause>
      <p className="snippet" dir="auto">
        {message}
      </p>
      {error !== undefined && <Failure error={error} />}
    </WaitingCard>
  );
}

const messageBadges = { unknown: t('May have been sent'), rejected: t('Message refused'), expired: t('Message expired') } as const;

/** A message to a chat platform that was refused, expired, or may have been sent. */
export function MessageCard({ item }: { readonly item: Of<'message'> }) {
  const { client, waiting } = useSession();
  const { busy, error, run } = useAction();
  const { deliveryId, state, text, endpoint, error: cause, attempts, part, parts } = item.message;
  const to = endpoint.conversationId;
  const act = (work: () => Promise<unknown>) => (): void => run(() => work().then(waiting.reload));
  return (
    <WaitingCard
      badge={state === 'rejected' || state === 'expired' ? messageBadges[state] : messageBadges.unknown}
      tone="bad"
      title={t('To {to} on {channelInstanceId}', { to, channelInstanceId: endpoint.channelInstanceId })}
      sinceMs={item.sinceMs}
      facts={
        <>
          {parts > 1 && <span>{t('part {part} of {parts}', { part, parts })}</span>}
          <span>{plural(attempts, 'attempt')}</span>
          <PageLink to="/channels">{t('Channels')}</PageLink>
        </>
      }
      actions={
        <>
          {state !== 'unknown' && <Dismiss item={item} name={t('the message to {to}', { to })} />}
          <span className="grow" />
          {state === 'unknown' && (
            <>
              <Button
                disabled={busy}
                label={t('Give up: message to {to}', { to })}
                onClick={act(async () => {
                  await client.call('delivery.settle', { deliveryId, as: 'rejected' });
                  waiting.dismiss(`${deliveryId} ${attempts}`);
                })}
              >
                {t('Give up')}
              </Button>
              <Button
                icon="check"
                disabled={busy}
                label={t('It was sent: message to {to}', { to })}
                onClick={act(() => client.call('delivery.settle', { deliveryId, as: 'accepted' }))}
              >
                {t('It was sent')}
              </Button>
            </>
          )}
          <Button
            look="primary"
            icon="retry"
            disabled={busy}
            label={t('Send again: message to {to}', { to })}
            onClick={act(() => client.call('delivery.resend', { deliveryId }))}
          >
            {t('Send again')}
          </Button>
        </>
      }
    >
      {cause !== null && <Cause>{cause}</Cause>}
      <p className="snippet" dir="auto">
        {text}
      </p>
      {error !== undefined && <Failure error={error} />}
    </WaitingCard>
  );
}
