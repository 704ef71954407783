import { PageLink } from './link.tsx';

/** Parts of a page, each with an address of its own: links, so that they open elsewhere and survive a reload. */
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
