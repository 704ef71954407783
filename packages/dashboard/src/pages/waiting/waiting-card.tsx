import { type ReactNode, useId } from 'react';
import { Badge, type Tone } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';

/** One waiting item: what it is, since when, and its buttons. */
export function WaitingCard({
  badge,
  tone = 'warn',
  title,
  sinceMs,
  facts,
  children,
  actions,
}: {
  readonly badge: string;
  readonly tone?: Tone;
  readonly title: ReactNode;
  readonly sinceMs: number;
  /** Who it is about, in short. */
  readonly facts?: ReactNode;
  readonly children?: ReactNode;
  readonly actions?: ReactNode;
}) {
  const id = useId();
  return (
    <article className="card waiting-card" aria-labelledby={id} tabIndex={-1}>
      <header>
        <h3 id={id} dir="auto">
          {title}
        </h3>
        <span className="facts-line">
          <Badge tone={tone}>{badge}</Badge>
          {facts}
          <When atMs={sinceMs} />
        </span>
      </header>
      {children}
      {actions !== undefined && <footer className="actions">{actions}</footer>}
    </article>
  );
}
