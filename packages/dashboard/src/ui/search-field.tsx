import { Icon } from './icon.tsx';

/** A search box; `label` is what a screen reader says, `hint` what it shows while empty. */
export function SearchField(props: {
  readonly label: string;
  readonly hint?: string;
  readonly title?: string;
  readonly value: string;
  readonly onChange: (words: string) => void;
}) {
  return (
    <div className="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={props.label}
        placeholder={props.hint ?? 'Search'}
        title={props.title}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
      />
    </div>
  );
}
