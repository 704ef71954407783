import { t } from '../../language.ts';
import { type ReactNode, useId } from 'react';
import { Icon } from '../../ui/icon.tsx';

/** One step: its heading opens and closes it. */
export function StepCard({
  number,
  title,
  summary,
  done,
  open,
  onToggle,
  children,
}: {
  readonly number: number;
  readonly title: string;
  readonly summary: string;
  readonly done: boolean;
  readonly open: boolean;
  readonly onToggle: () => void;
  readonly children: ReactNode;
}) {
  const id = useId();
  return (
    <li className={open ? 'start-step open' : 'start-step'}>
      <h2>
        <button type="button" className="start-head" aria-expanded={open} aria-controls={id} onClick={onToggle}>
          <span className={done ? 'start-mark done' : 'start-mark'} aria-hidden="true">
            {done ? <Icon name="check" /> : number}
          </span>
          <span className="start-title">
            {title}
            {done && <span className="visually-hidden">{t(', done')}</span>}
            <span className="start-summary">{summary}</span>
          </span>
          <Icon name="chevron" />
        </button>
      </h2>
      <div id={id} className="start-body" hidden={!open}>
        {open && children}
      </div>
    </li>
  );
}
