"""Uses no TensorFlow at all."""

import json
import sys

json.dump({"sum": sum(range(1000)), "arguments": sys.argv[1:]}, sys.stdout)
print()
