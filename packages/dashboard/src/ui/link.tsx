import type { ReactNode } from 'react';
import { navigate } from '../router.ts';

/** A link to another page of the dashboard; the browser handles opening it in a new tab or window. */
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
  /** `auto` for text of users and models, which may be right-to-left. */
  readonly dir?: 'auto';
  /** Accessible name when the content is only an icon. */
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
