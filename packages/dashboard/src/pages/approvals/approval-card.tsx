import { t, tx } from '../../language.ts';
import { addRule, type AllowRule, ruleFor } from '@gatehouse/client';
import { useEffect, useId, useRef, useState } from 'react';
import type { ApprovalRequest } from '../../data/approvals.ts';
import { useSession } from '../../data/context.ts';
import { ago, bytes, dateTime, duration } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { AgentBadge } from '../../ui/agent-badge.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Failure } from '../../ui/parts.tsx';
import { revealedJson, revealedText } from '../../ui/revealed.ts';

/** A pending call with all its arguments, and the buttons to decide on it. */
/** A pending call with all its arguments, and the buttons to decide. */
export function ApprovalCard({
  request,
  wanted = false,
  inChat = false,
}: {
  readonly request: ApprovalRequest;
  readonly wanted?: boolean;
  /** True in the conversation of the call, where only what the decision needs is shown. */
  readonly inChat?: boolean;
}) {
  const { client, approvals } = useSession();
  const [reason, setReason] = useState('');
  const { busy, error, run } = useAction();
  /** Stays set until the reloaded list no longer has the card, so that nobody decides twice. */
  const [isDecided, setDecided] = useState(false);
  /** The rule that is shown before it is written. */
  const [offered, setOffered] = useState<AllowRule>();
  const rule = ruleFor(request);
  const title = useId();
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (wanted) card.current?.focus();
  }, [wanted]);
  const { requestId, toolName, action, params, paramsBytes, digest, agentId, sessionKey, conversationRef, origin, trustLevel, createdAt } = request;
  const decide = (approved: boolean): void =>
    run(async () => {
      await client.call('admin.approval.resolve', { requestId, approved, ...(reason.trim() !== '' && { reason: reason.trim() }) });
      setDecided(true);
      approvals.reload();
    });
  const allowAlways = (wantedRule: AllowRule): void =>
    run(async () => {
      await addRule(client, wantedRule);
      await client.call('admin.approval.resolve', { requestId, approved: true });
      setDecided(true);
      approvals.reload();
    });
  return (
    <article className="card approval" aria-labelledby={title} tabIndex={-1} ref={card}>
      <header>
        <h3 id={title}>
          <span className="mono">{revealedText(toolName)}</span>
        </h3>
        <TimeLeft request={request} />
      </header>
      <div className="approval-body">
        {action !== toolName && (
          <p className="approval-action" dir="auto">
            {revealedText(action)}
          </p>
        )}
        <p className="badges">
          <AgentBadge agentId={agentId} />
          <Badge>{t('from {origin}', { origin })}</Badge>
          <Badge tone={trustLevel === 'tainted' ? 'warn' : 'good'}>
            {trustLevel === 'tainted' ? t('after reading external content') : t('no external content')}
          </Badge>
        </p>
        <p>{reasonText(request.reason)}</p>
        <pre className="raw-text" tabIndex={0} role="region" aria-label={t('Arguments of {toolName}', { toolName })}>
          {revealedJson(params)}
        </pre>
        {!inChat && (
          <dl className="facts">
            <dt>{t('Requested')}</dt>
            <dd title={dateTime(createdAt)}>{ago(createdAt)}</dd>
          </dl>
        )}
        {typeof rule === 'string' && <p className="hint">{tx("This call can't be allowed always: {rule}.", { rule: revealedText(rule) })}</p>}
        {offered !== undefined && (
          <section className="rule-offer" aria-label={t('Rule that allows this call')}>
            <p>
              {tx('{name} the same tool, agent, origin and arguments. The rule is added to {span}, in front of the others.', {
                name: <strong>{t('Calls like this one are then made without asking:')}</strong>,
                span: <span className="mono">{t('approvals.rules')}</span>,
              })}
            </p>
            <pre className="raw-text" tabIndex={0} role="region" aria-label={t('Rule')}>
              {revealedJson(offered)}
            </pre>
            <div className="choices">
              <Button disabled={busy || isDecided} onClick={() => setOffered(undefined)}>
                {t('Cancel')}
              </Button>
              <Button look="primary" disabled={busy || isDecided} onClick={() => allowAlways(offered)}>
                {t('Add rule and allow')}
              </Button>
            </div>
          </section>
        )}
        {!inChat && (
          <details className="hint">
            <summary>{t('What exactly is allowed')}</summary>
            <dl className="facts">
              <dt>{t('Conversation')}</dt>
              <dd>
                <PageLink to={`/chat/${conversationRef}`}>{revealedText(sessionKey)}</PageLink>
              </dd>
              <dt>{t('Arguments')}</dt>
              <dd>{tx('{paramsBytes}, all shown above', { paramsBytes: bytes(paramsBytes) })}</dd>
              <dt>{t('Digest')}</dt>
              <dd className="mono">{digest}</dd>
            </dl>
          </details>
        )}
      </div>
      {error !== undefined && <Failure error={error} onRetry={approvals.reload} />}
      <footer className="approval-foot">
        <input
          aria-label={t('Reason for deciding on {toolName}', { toolName })}
          placeholder={t('Reason for the agent (optional)')}
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        <CopyButton text={JSON.stringify(params, null, 2)} label={t('Copy')} />
        <Button look="danger" disabled={busy || isDecided} onClick={() => decide(false)}>
          {t('Deny')}
        </Button>
        {typeof rule !== 'string' && offered === undefined && (
          <Button disabled={busy || isDecided} onClick={() => setOffered(rule)}>
            {t('Always allow this…')}
          </Button>
        )}
        <Button look="primary" disabled={busy || isDecided} onClick={() => decide(true)}>
          {t('Allow once')}
        </Button>
      </footer>
    </article>
  );
}

/** Counts down to the time at which the call is denied. */
function TimeLeft({ request: { expiresAt } }: { readonly request: ApprovalRequest }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((expiresAt - now) / 1000);
  const minutes = Math.floor(seconds / 60);
  if (seconds <= 0) return <Badge tone="bad">{t('Expired')}</Badge>;
  return (
    <span
      role="timer"
      className={seconds < 60 ? 'time-left bad-text' : 'time-left'}
      title={t('Denied automatically in {seconds}', { seconds: duration(seconds) })}
    >
      {minutes >= 60
        ? t('{seconds} left', { seconds: duration(seconds) })
        : minutes > 0
          ? t('{minutes}:{padStart} left', { minutes, padStart: String(seconds % 60).padStart(2, '0') })
          : t('{seconds} s left', { seconds })}
    </span>
  );
}

/** Says which rule asked; other reasons are sentences already. */
function reasonText(reason: string): string {
  const rule = /^approvals\.rules\[(\d+)\]$/.exec(reason)?.[1];
  return rule === undefined ? revealedText(reason) : t('Rule {rule} of your approval settings asks before this call.', { rule: Number(rule) + 1 });
}
