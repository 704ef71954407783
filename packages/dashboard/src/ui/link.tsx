import type { ReactNode } from 'react';
import { navigate } from '../router.ts';

/** A link to another page of the dashboard; opened elsewhere (new tab, new window) by the browser itself. */
export function PageLink({
  to,
  className,
  current = false,
  onFollow,
  dir,
  label,
  children,
}: {
  readonly to: string;
  readonly className?: string;
  readonly current?: boolean;
  readonly onFollow?: () => void;
  /** `auto` for words of people and models, which may run from right to left. */
  readonly dir?: 'auto';
  /** Its name where the content is only a picture. */
  readonly label?: string;
  readonly children: ReactNode;
}) {
  return (
    <a
      href={to}
      className={className}
      dir={dir}
      aria-label={label}
      title={label}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        navigate(to);
        onFollow?.();
      }}
    >
      {children}
    </a>
  );
}
