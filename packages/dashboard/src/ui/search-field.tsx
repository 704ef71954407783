import { t } from '../language.ts';
import { Icon } from './icon.tsx';

/** A search box; `label` is its accessible name, `hint` its placeholder. */
export function SearchField(props: {
  readonly label: string;
  readonly hint?: string;
  readonly title?: string;
  readonly value: string;
  readonly onChange: (query: string) => void;
  /** Called by Enter: moves the focus to what was found, where other controls are in between. */
  readonly onEnter?: () => void;
}) {
  return (
    <div className="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={props.label}
        placeholder={props.hint ?? t('Search')}
        title={props.title}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
        onKeyDown={({ key, nativeEvent }) => {
          if (key === 'Enter' && !nativeEvent.isComposing) props.onEnter?.();
        }}
      />
    </div>
  );
}
