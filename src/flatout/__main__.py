from flatout.cli import main

main()
