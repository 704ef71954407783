import { t } from '../../language.ts';
import { useRef } from 'react';
import { IconButton } from '../../ui/parts.tsx';

/** A button that opens the browser's file dialog. */
export function FilePicker({ disabled, onPick }: { readonly disabled: boolean; readonly onPick: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-hidden="true"
        tabIndex={-1}
        onChange={(event) => {
          onPick([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
      <IconButton icon="clip" label={t('Attach files')} disabled={disabled} onClick={() => input.current?.click()} />
    </>
  );
}
