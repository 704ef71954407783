// The packages that every page uses, in a file that is run before the rest: all in one task would hold a slow phone.
import 'react-dom/client';
import '@tanstack/react-query';
import 'marked';
