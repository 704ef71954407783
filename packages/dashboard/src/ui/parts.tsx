import { t, tx } from '../language.ts';
import { type ReactNode, type Ref, useId } from 'react';
import { describeError } from '../data/errors.ts';
import { Icon, type IconName } from './icon.tsx';
import { PageLink } from './link.tsx';

export interface ButtonProps {
  readonly children: ReactNode;
  readonly icon?: IconName;
  readonly look?: 'primary' | 'plain' | 'quiet' | 'danger';
  readonly small?: boolean;
  readonly disabled?: boolean;
  readonly submit?: boolean;
  readonly onClick?: () => void;
  readonly label?: string;
}

export function Button({ children, icon, look = 'plain', small = false, disabled = false, submit = false, onClick, label }: ButtonProps) {
  return (
    <button
      type={submit ? 'submit' : 'button'}
      className={['button', look === 'plain' ? '' : look, small ? 'small' : ''].filter(Boolean).join(' ')}
      disabled={disabled}
      onClick={onClick}
      aria-label={label}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** An icon-only button; its label is the accessible name and the tooltip. */
export function IconButton({
  icon,
  label,
  onClick,
  disabled = false,
  expanded,
  ref,
}: {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
  /** Set for a button that opens and closes something. */
  readonly expanded?: boolean;
  readonly ref?: Ref<HTMLButtonElement>;
}) {
  return (
    <button
      ref={ref}
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

/** A field with its label above and an optional hint below. */
export function Field({
  label,
  hint,
  wide = false,
  children,
}: {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly wide?: boolean;
  readonly children: (id: string, hintId: string | undefined) => ReactNode;
}) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className={wide ? 'field wide' : 'field'}>
      <label htmlFor={id}>{label}</label>
      {children(id, hintId)}
      {hint !== undefined && (
        <p className="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent';

export function Badge({ children, tone = 'neutral' }: { readonly children: ReactNode; readonly tone?: Tone }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** Shows what failed, why, and what to do. */
export function Failure({
  error,
  onRetry,
  title,
}: {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
  readonly title?: string | undefined;
}) {
  const { message, details, requestId } = describeError(error);
  return (
    <div className="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        {title !== undefined && <strong>{title} </strong>}
        {message}
        {details.length > 0 && (
          <ul>
            {details.map((detail) => (
              <li key={detail}>{detail}</li>
            ))}
          </ul>
        )}
        {requestId !== undefined && <p className="hint">{tx('Request {requestId}', { requestId })}</p>}
      </div>
      {onRetry !== undefined && (
        <Button small icon="retry" onClick={onRetry}>
          {t('Try again')}
        </Button>
      )}
    </div>
  );
}

export function Notice({ children, tone = 'neutral' }: { readonly children: ReactNode; readonly tone?: Tone }) {
  return <div className={`notice ${tone}`}>{children}</div>;
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Placeholder lines while content loads. */
export function Skeleton({ lines = 4 }: { readonly lines?: number }) {
  return (
    <div className="skeleton" role="status" aria-label={t('Loading')}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

/** The frame of every page: title, actions and content. */
export function Page({
  title,
  lead,
  actions,
  help,
  wide = false,
  children,
}: {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  /** Name of its guide. */
  readonly help?: 'agents' | 'channels' | 'dashboard' | 'delegation' | 'schedule';
  /** Uses the width of large screens, for tables and lists with details. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <div className={wide ? 'page wide' : 'page'}>
      <header className="page-head">
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p className="lead">{lead}</p>}
        </div>
        {(actions !== undefined || help !== undefined) && (
          <div className="actions">
            {help !== undefined && (
              <PageLink to={`/help/${help}`} className="button quiet">
                <Icon name="info" />
                {t('Help')}
              </PageLink>
            )}
            {actions}
          </div>
        )}
      </header>
      {children}
    </div>
  );
}

/** Replaces a page that only admins may see. */
export function AdminOnly({ title }: { readonly title: string }) {
  return (
    <Page title={title}>
      <Empty title={t('This needs a token with the scope admin')}>
        <p>{t('The token of this tab may chat and see its own conversations. Log in with an admin token to administer the gateway.')}</p>
      </Empty>
    </Page>
  );
}
