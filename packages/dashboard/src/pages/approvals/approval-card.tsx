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
          <Badge>{`from ${origin}`}</Badge>
          <Badge tone={trustLevel === 'tainted' ? 'warn' : 'good'}>
            {trustLevel === 'tainted' ? 'after reading external content' : 'no external content'}
          </Badge>
        </p>
        <p>{reasonText(request.reason)}</p>
        <pre className="raw-text" tabIndex={0} role="region" aria-label={`Arguments of ${toolName}`}>
          {revealedJson(params)}
        </pre>
        {!inChat && (
          <dl className="facts">
            <dt>Requested</dt>
            <dd title={dateTime(createdAt)}>{ago(createdAt)}</dd>
          </dl>
        )}
        {typeof rule === 'string' && <p className="hint">This call can't be allowed always: {revealedText(rule)}.</p>}
        {offered !== undefined && (
          <section className="rule-offer" aria-label="Rule that allows this call">
            <p>
              <strong>Calls like this one are then made without asking:</strong> the same tool, agent, origin and arguments. The rule is added to{' '}
              <span className="mono">approvals.rules</span>, in front of the others.
            </p>
            <pre className="raw-text" tabIndex={0} role="region" aria-label="Rule">
              {revealedJson(offered)}
            </pre>
            <div className="choices">
              <Button disabled={busy || isDecided} onClick={() => setOffered(undefined)}>
                Cancel
              </Button>
              <Button look="primary" disabled={busy || isDecided} onClick={() => allowAlways(offered)}>
                Add rule and allow
              </Button>
            </div>
          </section>
        )}
        {!inChat && (
          <details className="hint">
            <summary>What exactly is allowed</summary>
            <dl className="facts">
              <dt>Conversation</dt>
              <dd>
                <PageLink to={`/chat/${conversationRef}`}>{revealedText(sessionKey)}</PageLink>
              </dd>
              <dt>Arguments</dt>
              <dd>{bytes(paramsBytes)}, all shown above</dd>
              <dt>Digest</dt>
              <dd className="mono">{digest}</dd>
            </dl>
          </details>
        )}
      </div>
      {error !== undefined && <Failure error={error} onRetry={approvals.reload} />}
      <footer className="approval-foot">
        <input
          aria-label={`Reason for deciding on ${toolName}`}
          placeholder="Reason for the agent (optional)"
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        <CopyButton text={JSON.stringify(params, null, 2)} label="Copy" />
        <Button look="danger" disabled={busy || isDecided} onClick={() => decide(false)}>
          Deny
        </Button>
        {typeof rule !== 'string' && offered === undefined && (
          <Button disabled={busy || isDecided} onClick={() => setOffered(rule)}>
            Always allow this…
          </Button>
        )}
        <Button look="primary" disabled={busy || isDecided} onClick={() => decide(true)}>
          Allow once
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
  if (seconds <= 0) return <Badge tone="bad">Expired</Badge>;
  return (
    <span role="timer" className={seconds < 60 ? 'time-left bad-text' : 'time-left'} title={`Denied automatically in ${duration(seconds)}`}>
      {minutes >= 60 ? `${duration(seconds)} left` : minutes > 0 ? `${minutes}:${String(seconds % 60).padStart(2, '0')} left` : `${seconds} s left`}
    </span>
  );
}

/** Says which rule asked; other reasons are sentences already. */
function reasonText(reason: string): string {
  const rule = /^approvals\.rules\[(\d+)\]$/.exec(reason)?.[1];
  return rule === undefined ? revealedText(reason) : `Rule ${Number(rule) + 1} of your approval settings asks before this call.`;
}
