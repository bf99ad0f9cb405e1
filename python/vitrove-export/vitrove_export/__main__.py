import sys

from vitrove_export.cli import main

sys.exit(main())
