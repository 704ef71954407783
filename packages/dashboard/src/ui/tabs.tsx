import { PageLink } from './link.tsx';

/** Tabs of a page, each with its own address: links, so that they can open in a new tab and survive a reload. */
export function Tabs({
  label,
  tabs,
}: {
  readonly label: string;
  readonly tabs: readonly { readonly to: string; readonly name: string; readonly current: boolean }[];
}) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ to, name, current }) => (
        <PageLink key={to} to={to} className="tab" current={current}>
          {name}
        </PageLink>
      ))}
    </nav>
  );
}
